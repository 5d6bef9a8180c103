"""DepthToSpace and SpaceToDepth, whose modes differ in the order of the depth channels.

A depth channel combines a channel with a row and a column in the block. The order is (channel, row, column)
in mode CRD, and (row, column, channel) in mode DCR.
"""

from collections.abc import Sequence

from opshift.adapters import Node, Rewriter, adapter, function_body
from opshift.adapters.emit.shapes import (
    Dimension,
    dimension,
    reshape,
    shape_tensor,
)

OPSET = 5
"""Opset of the nodes that replace mode CRD: the first in which the shape of Reshape is an input."""


@adapter("DepthToSpace", 11, 1)
def replace_depth_to_space_mode(node: Node, out: Rewriter) -> None:
    """Drop mode DCR, the only mode of version 1; rewrite CRD, or reorder channels if sizes are unknown."""
    out = out.for_opset(OPSET)
    data, block, attributes = node.inputs[0], node.attribute("blocksize"), node.without("mode")
    sizes = _known_image_sizes(data, out)
    if node.attribute("mode", b"DCR") == b"DCR" or out.known_dimension(data, 1) == 0:
        out.replace(node, attributes=attributes)
    elif sizes is None:
        out.replace(node, inputs=[_move_block_first(data, block * block, out)], attributes=attributes)
    else:
        channels, height, width = sizes
        depth = channels // (block * block)
        split = reshape(data, (0, depth, block, block, height, width), out)
        moved = out.emit("Transpose", [split], perm=[0, 1, 4, 2, 5, 3])
        reshape(moved, (0, depth, height * block, width * block), out, node.outputs)


def _known_image_sizes(data: str, out: Rewriter) -> tuple[int, int, int] | None:
    """Return channels, height and width, or `None` if one is unknown or 0: Reshape would copy a 0."""
    shape = out.shape(data)
    known = tuple(size for size in shape[1:] if size) if shape else ()
    return (known[0], known[1], known[2]) if len(known) == 3 else None


def _move_block_first(data: str, block: int, out: Rewriter) -> str:
    """Reorder the channels of an image from (depth, block) to (block, depth).

    If there are 0 channels, Reshape cannot join block and depth: a 0 in the shape copies a dimension of the
    input, and Reshape infers no size of empty data.
    """
    channels_last, channels = out.emit("Transpose", [data], perm=[0, 2, 3, 1]), out.known_dimension(data, 1)
    if channels is not None:
        split = reshape(channels_last, (0, 0, 0, channels // block, block), out)
    else:
        # Compute several sizes: onnxruntime replaces a single computed size by -1, which fails if empty.
        shape = out.emit("Shape", [channels_last])
        split = reshape(channels_last, (out.emit("Div", [shape, out.int64([1, 1, 1, block])]), block), out)
    swapped = out.emit("Transpose", [split], perm=[0, 1, 2, 4, 3])
    if channels is not None:
        joined = reshape(swapped, (0, 0, 0, channels), out)
    else:
        parts = out.emit_all("Split", [swapped], block, axis=3)
        joined = out.emit("Squeeze", [out.emit("Concat", parts, axis=4)], axes=[3])
    return out.emit("Transpose", [joined], perm=[0, 3, 1, 2])


def _move_block_last(data: str, block: int, total: int | None, out: Rewriter, outputs: Sequence[str]) -> None:
    """Reorder image channels from (block, depth) to (depth, block); `total` is their number if known."""
    channels_last = out.emit("Transpose", [data], perm=[0, 2, 3, 1])
    parts = out.emit_all("Split", [out.emit("Unsqueeze", [channels_last], axes=[3])], block, axis=4)
    split = out.emit("Concat", parts, axis=3)
    swapped = out.emit("Transpose", [split], perm=[0, 1, 2, 4, 3])
    shape = out.emit("Shape", [channels_last]) if total is None else out.int64([0, 0, 0, total])
    joined = out.emit("Reshape", [swapped, shape])
    out.emit("Transpose", [joined], outputs, perm=[0, 3, 1, 2])


@adapter("SpaceToDepth", 28, 13)
def replace_space_to_depth_mode(node: Node, out: Rewriter) -> None:
    """Drop mode DCR, the only mode of version 13; rewrite CRD, or reorder channels if sizes are unknown."""
    out = out.for_opset(OPSET)
    data, block, attributes = node.inputs[0], node.attribute("blocksize"), node.without("mode")
    sizes = _known_image_sizes(data, out)
    if node.attribute("mode", b"DCR") == b"DCR" or out.known_dimension(data, 1) == 0:
        out.replace(node, attributes=attributes)
    elif sizes is None:
        depth = out.fresh("depth")
        out.replace(node, outputs=[depth], attributes=attributes)
        channels = out.known_dimension(data, 1)
        total = None if channels is None else channels * block * block
        _move_block_last(depth, block * block, total, out, node.outputs)
    else:
        channels, height, width = sizes
        rows, columns = height // block, width // block
        split = reshape(data, (0, channels, rows, block, columns, block), out)
        moved = out.emit("Transpose", [split], perm=[0, 1, 3, 5, 2, 4])
        reshape(moved, (0, channels * block * block, rows, columns), out, node.outputs)


@function_body("DepthToSpace", 28)
def expand_depth_to_space(node: Node, out: Rewriter) -> None:
    """Split the channels into depth and block, and move the block dimensions behind height and width."""
    data, block = node.inputs[0], node.attribute("blocksize")
    batch, channels, height, width = (dimension(data, axis, out) for axis in range(4))
    depth = _scale_size(channels, "Div", block * block, out)
    is_dcr = node.attribute("mode", b"DCR") == b"DCR"
    split = (batch, block, block, depth) if is_dcr else (batch, depth, block, block)
    order = (0, 3, 4, 1, 5, 2) if is_dcr else (0, 1, 4, 2, 5, 3)
    sizes = (batch, depth, _scale_size(height, "Mul", block, out), _scale_size(width, "Mul", block, out))
    _rearrange(node, (*split, height, width), order, sizes, out)


@function_body("SpaceToDepth", 28)
def expand_space_to_depth(node: Node, out: Rewriter) -> None:
    """Split height and width into blocks, and move the block dimensions to the channels."""
    data, block = node.inputs[0], node.attribute("blocksize")
    batch, channels, height, width = (dimension(data, axis, out) for axis in range(4))
    rows, columns = _scale_size(height, "Div", block, out), _scale_size(width, "Div", block, out)
    is_dcr = node.attribute("mode", b"DCR") == b"DCR"
    order = (0, 3, 5, 1, 2, 4) if is_dcr else (0, 1, 3, 5, 2, 4)
    sizes = (batch, _scale_size(channels, "Mul", block * block, out), rows, columns)
    _rearrange(node, (batch, channels, rows, block, columns, block), order, sizes, out)


def _scale_size(size: Dimension, op_type: str, factor: int, out: Rewriter) -> Dimension:
    if isinstance(size, int):
        return size * factor if op_type == "Mul" else size // factor
    return out.emit(op_type, [size, out.int64([factor])])


def _rearrange(
    node: Node, split: Sequence[Dimension], order: Sequence[int], sizes: Sequence[Dimension], out: Rewriter
) -> None:
    """Emit Reshape, Transpose and Reshape, with `allowzero` because a size may be 0."""
    parts = out.emit("Reshape", [node.inputs[0], shape_tensor(split, out)], allowzero=1)
    moved = out.emit("Transpose", [parts], perm=order)
    out.emit("Reshape", [moved, shape_tensor(sizes, out)], node.outputs, allowzero=1)
