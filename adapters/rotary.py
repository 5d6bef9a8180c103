"""RotaryEmbedding came at 23: pairs of numbers turned by angles, of which sine and cosine are given."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import reshaped
from opshift.adapters.table import adapter

PAST_THE_END = 2**63 - 1


@adapter("RotaryEmbedding", 23, 22)
def pairs_are_turned(node: Node, out: Rewriter) -> None:
    """The first `rotary_embedding_dim` numbers of each head are turned, all of them if it is 0."""
    packed = out.rank(node.inputs[0]) == 3
    data = _in_heads(node, out) if packed else node.inputs[0]
    width = _turned_width(node, out)
    turned = _turned(_part(data, 0, width, out) if width else data, node, packed, out)
    if width:
        turned = out.emit("Concat", [turned, _part(data, width, PAST_THE_END, out)], axis=3)
    shape = [0, 0, -1] if packed else [0, 0, 0, -1]
    out.emit("Reshape", [turned, out.constant(shape, "int64")], node.outputs)


def _in_heads(node: Node, out: Rewriter) -> str:
    """Batch x sequence x heads x head size."""
    heads = node.attribute("num_heads", 0)
    if not heads:
        raise CannotConvert("num_heads is left out, which 3-D data needs", remedy="state num_heads")
    return reshaped(node.inputs[0], (0, 0, heads, -1), out)


def _turned_width(node: Node, out: Rewriter) -> int:
    """How many numbers of a head are turned; 0 for all."""
    width, shape = node.attribute("rotary_embedding_dim", 0), out.shape(node.inputs[0])
    size = shape[-1] if shape else None
    if size is not None and shape is not None and len(shape) == 3:
        size //= node.attribute("num_heads", 1) or 1
    return 0 if width == size else int(width)


def _part(data: str, start: int, end: int, out: Rewriter) -> str:
    bounds = [out.constant([each], "int64") for each in (start, end, 3)]
    return out.emit("Slice", [data, *bounds])


def _turned(data: str, node: Node, packed: bool, out: Rewriter) -> str:
    """Pairs stand next to each other if `interleaved`; else one half of a head holds the partners."""
    interleaved = node.attribute("interleaved", 0)
    pairs = reshaped(data, (0, 0, 0, -1, 2) if interleaved else (0, 0, 0, 2, -1), out)
    axis = 4 if interleaved else 3
    first, second = (out.emit("Gather", [pairs, out.constant(at, "int64")], axis=axis) for at in (0, 1))
    cosine, sine = (_angles(node, position, packed, out) for position in (1, 2))
    real = out.emit("Sub", [out.emit("Mul", [cosine, first]), out.emit("Mul", [sine, second])])
    imaginary = out.emit("Add", [out.emit("Mul", [sine, first]), out.emit("Mul", [cosine, second])])
    if not interleaved:
        return out.emit("Concat", [real, imaginary], axis=3)
    sides = [
        out.emit("Unsqueeze", [each, out.constant([4], "int64")], opset=13) for each in (real, imaginary)
    ]
    return reshaped(out.emit("Concat", sides, axis=4), (0, 0, 0, -1), out)


def _angles(node: Node, position: int, packed: bool, out: Rewriter) -> str:
    """The sine or cosine for every token, the same for all heads."""
    angles = node.inputs[position]
    if node.input(3):
        angles = out.emit("Gather", [angles, node.inputs[3]], axis=0)
    return out.emit("Unsqueeze", [angles, out.constant([2 if packed else 1], "int64")], opset=13)
