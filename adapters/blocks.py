"""DepthToSpace and SpaceToDepth: `mode` CRD puts the channel before the position in the block, DCR after."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

OPSET = 5
"""What helping nodes are written for: the first opset whose Reshape takes its shape as an input."""


@adapter("DepthToSpace", 11, 1)
def channels_come_after_positions(node: Node, out: Rewriter) -> None:
    """CRD moves blocks that lie the other way round among the channels."""
    attributes = node.without("mode")
    if node.attribute("mode", b"DCR") == b"DCR":
        out.become(node, attributes=attributes)
        return
    block = node.attribute("blocksize")
    sizes = _image(node.inputs[0], out)
    if sizes is None:
        channels = _channels(node.inputs[0], out)
        parts = (-1 if channels is None else channels // (block * block), block * block)
        data = _turned(node.inputs[0], parts, out)
        out.become(node, inputs=[data], attributes=attributes)
        return
    channels, height, width = sizes
    depth = channels // (block * block)
    split = _reshaped(node.inputs[0], (0, depth, block, block, height, width), out)
    moved = out.emit("Transpose", [split], opset=OPSET, perm=[0, 1, 4, 2, 5, 3])
    _reshaped(moved, (0, depth, height * block, width * block), out, node.outputs)


@adapter("SpaceToDepth", 28, 13)
def positions_come_before_channels(node: Node, out: Rewriter) -> None:
    """CRD puts blocks the other way round among the channels."""
    attributes = node.without("mode")
    if node.attribute("mode", b"DCR") == b"DCR":
        out.become(node, attributes=attributes)
        return
    block = node.attribute("blocksize")
    sizes = _image(node.inputs[0], out)
    if sizes is None:
        depth = out.fresh("depth")
        out.become(node, outputs=[depth], attributes=attributes)
        channels = _channels(node.inputs[0], out)
        _turned(depth, (block * block, -1 if channels is None else channels), out, node.outputs)
        return
    channels, height, width = sizes
    rows, columns = height // block, width // block
    parts = _reshaped(node.inputs[0], (0, channels, rows, block, columns, block), out)
    moved = out.emit("Transpose", [parts], opset=OPSET, perm=[0, 1, 3, 5, 2, 4])
    _reshaped(moved, (0, channels * block * block, rows, columns), out, node.outputs)


def _image(data: str, out: Rewriter) -> tuple[int, int, int] | None:
    """Channels, height and width, if they are known; a size of 0 would mean another in a Reshape."""
    shape = out.shape(data)
    known = tuple(size for size in shape[1:] if size) if shape else ()
    return (known[0], known[1], known[2]) if len(known) == 3 else None


def _channels(data: str, out: Rewriter) -> int | None:
    shape = out.shape(data)
    return shape[1] if shape else None


def _turned(data: str, parts: tuple[int, int], out: Rewriter, outputs: Sequence[str] | int = 1) -> str:
    """An image whose channels, which are two indices in one, have these in the other order."""
    last = out.emit("Transpose", [data], opset=OPSET, perm=[0, 2, 3, 1])
    split = _reshaped(last, (0, 0, 0, *parts), out)
    turned = out.emit("Transpose", [split], opset=OPSET, perm=[0, 1, 2, 4, 3])
    joined = _reshaped(turned, (0, 0, 0, -1 if -1 in parts else parts[0] * parts[1]), out)
    return out.emit("Transpose", [joined], outputs, opset=OPSET, perm=[0, 3, 1, 2])


def _reshaped(data: str, shape: tuple[int, ...], out: Rewriter, outputs: Sequence[str] | int = 1) -> str:
    return out.emit("Reshape", [data, out.constant(shape, "int64")], outputs, opset=OPSET)
