"""RotaryEmbedding (introduced in opset 23): rotate pairs of elements by angles with given sine and cosine."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.heads import size_per_head
from opshift.adapters.emit.shapes import INT64_MAX, Dimension, dimension, divide_dimension, reshape


@adapter("RotaryEmbedding", 23, 22)
def expand_rotary_embedding(node: Node, out: Rewriter) -> None:
    """Rewrite as arithmetic on the first `rotary_embedding_dim` elements of each head; 0 means all."""
    packed = out.rank(node.inputs[0]) == 3
    head_size = size_per_head(node.inputs[0], (packed and node.attribute("num_heads", 0)) or 1, out)
    data = _split_heads(node, head_size, out) if packed else node.inputs[0]
    width: int = node.attribute("rotary_embedding_dim", 0)
    is_partial = width not in (0, head_size)
    rotated_data = _slice_last(data, 0, width, out) if is_partial else data
    rotated = _rotate(rotated_data, width if is_partial else head_size, node, packed, out)
    if is_partial:
        rotated = out.emit("Concat", [rotated, _slice_last(data, width, INT64_MAX, out)], axis=3)
    if packed:
        reshape(rotated, (0, 0, dimension(node.inputs[0], 2, out)), out, node.outputs)
    else:
        rename_output(rotated, node, out)


def _split_heads(node: Node, head_size: Dimension, out: Rewriter) -> str:
    """Return the data as (batch, sequence, heads, head size)."""
    heads = node.attribute("num_heads", 0)
    if not heads:
        reason = "num_heads is missing, but 3-D data requires it"
        raise CannotConvert(reason, "node.invalid", remedy="set num_heads")
    return reshape(node.inputs[0], (0, 0, heads, head_size), out)


def _rotate(data: str, width: Dimension, node: Node, packed: bool, out: Rewriter) -> str:
    """Rotate pairs: adjacent elements if `interleaved`, otherwise elements of both halves of a head.

    `width` is the number of elements of a head to rotate.
    """
    interleaved, half = node.attribute("interleaved", 0), divide_dimension(width, 2, out)
    pairs = reshape(data, (0, 0, 0, half, 2) if interleaved else (0, 0, 0, 2, half), out)
    axis = 4 if interleaved else 3
    first, second = (out.emit("Gather", [pairs, out.int64(index)], axis=axis) for index in (0, 1))
    cosine, sine = (_angles(node, position, packed, out) for position in (1, 2))
    real = out.emit("Sub", [out.emit("Mul", [cosine, first]), out.emit("Mul", [sine, second])])
    imaginary = out.emit("Add", [out.emit("Mul", [sine, first]), out.emit("Mul", [cosine, second])])
    if not interleaved:
        return out.emit("Concat", [real, imaginary], axis=3)
    columns = [out.emit("Unsqueeze", [each, out.int64([4])], opset=13) for each in (real, imaginary)]
    return reshape(out.emit("Concat", columns, axis=4), (0, 0, 0, width), out)


def _angles(node: Node, position: int, packed: bool, out: Rewriter) -> str:
    """Return the sine or cosine for every token, the same for all heads."""
    angles = node.inputs[position]
    if node.input(3):
        angles = out.emit("Gather", [angles, node.inputs[3]], axis=0)
    return out.emit("Unsqueeze", [angles, out.int64([2 if packed else 1])], opset=13)


def _slice_last(data: str, start: int, end: int, out: Rewriter) -> str:
    bounds = [out.int64([each]) for each in (start, end, 3)]
    return out.emit("Slice", [data, *bounds])
