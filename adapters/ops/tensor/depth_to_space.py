"""DepthToSpace and SpaceToDepth: order of the factors of the depth channels.

Mode CRD puts the channel before the position in the block, and mode DCR after it.
"""

from collections.abc import Sequence

from opshift.adapters import Node, Rewriter, adapter, function_body
from opshift.adapters.emit.shapes import (
    Dimension,
    dimension,
    divide_dimension,
    multiply_dimension,
    reshape,
    shape_tensor,
)

OPSET = 5
"""Opset of the emitted nodes: the first in which Reshape reads its shape from an input."""


@adapter("DepthToSpace", 11, 1)
def replace_depth_to_space_mode(node: Node, out: Rewriter) -> None:
    """Drop mode DCR, the only one of version 1; rewrite CRD, or reorder the channels for DCR."""
    out = out.for_opset(OPSET)
    data, block, attributes = node.inputs[0], node.attribute("blocksize"), node.without("mode")
    sizes = _known_image_sizes(data, out)
    if node.attribute("mode", b"DCR") == b"DCR":
        out.replace(node, attributes=attributes)
    elif sizes is None:
        total = dimension(data, 1, out)
        parts = divide_dimension(total, block * block, out), block * block
        swapped = _swap_channel_factors(data, parts, total, out)
        out.replace(node, inputs=[swapped], attributes=attributes)
    else:
        channels, height, width = sizes
        depth = channels // (block * block)
        split = reshape(data, (0, depth, block, block, height, width), out)
        moved = out.emit("Transpose", [split], perm=[0, 1, 4, 2, 5, 3])
        reshape(moved, (0, depth, height * block, width * block), out, node.outputs)


def _known_image_sizes(data: str, out: Rewriter) -> tuple[int, int, int] | None:
    """Return channels, height and width if they are known and positive: Reshape would copy a size for 0."""
    shape = out.shape(data)
    known = tuple(size for size in shape[1:] if size) if shape else ()
    return (known[0], known[1], known[2]) if len(known) == 3 else None


def _swap_channel_factors(
    data: str,
    parts: tuple[Dimension, Dimension],
    total: Dimension,
    out: Rewriter,
    outputs: Sequence[str] | int = 1,
) -> str:
    """Transpose the two factors of the channel dimension of an image."""
    channels_last = out.emit("Transpose", [data], perm=[0, 2, 3, 1])
    split = reshape(channels_last, (0, 0, 0, *parts), out)
    swapped = out.emit("Transpose", [split], perm=[0, 1, 2, 4, 3])
    joined = reshape(swapped, (0, 0, 0, total), out)
    return out.emit("Transpose", [joined], outputs, perm=[0, 3, 1, 2])


@adapter("SpaceToDepth", 28, 13)
def replace_space_to_depth_mode(node: Node, out: Rewriter) -> None:
    """Drop mode DCR, the only one of version 13; rewrite CRD, or reorder the channels of DCR."""
    out = out.for_opset(OPSET)
    data, block, attributes = node.inputs[0], node.attribute("blocksize"), node.without("mode")
    sizes = _known_image_sizes(data, out)
    if node.attribute("mode", b"DCR") == b"DCR":
        out.replace(node, attributes=attributes)
    elif sizes is None:
        depth = out.fresh("depth")
        out.replace(node, outputs=[depth], attributes=attributes)
        depth_size = dimension(data, 1, out)
        total = multiply_dimension(depth_size, block * block, out)
        _swap_channel_factors(depth, (block * block, depth_size), total, out, node.outputs)
    else:
        channels, height, width = sizes
        rows, columns = height // block, width // block
        split = reshape(data, (0, channels, rows, block, columns, block), out)
        moved = out.emit("Transpose", [split], perm=[0, 1, 3, 5, 2, 4])
        reshape(moved, (0, channels * block * block, rows, columns), out, node.outputs)


@function_body("DepthToSpace", 28)
def expand_depth_to_space(node: Node, out: Rewriter) -> None:
    """Split the channels into depth and block, and move the sizes of the block behind height and width."""
    data, block = node.inputs[0], node.attribute("blocksize")
    batch, channels, height, width = (dimension(data, axis, out) for axis in range(4))
    depth = _scale(channels, "Div", block * block, out)
    is_dcr = node.attribute("mode", b"DCR") == b"DCR"
    split = (batch, block, block, depth) if is_dcr else (batch, depth, block, block)
    order = (0, 3, 4, 1, 5, 2) if is_dcr else (0, 1, 4, 2, 5, 3)
    sizes = (batch, depth, _scale(height, "Mul", block, out), _scale(width, "Mul", block, out))
    _rearrange(node, (*split, height, width), order, sizes, out)


@function_body("SpaceToDepth", 28)
def expand_space_to_depth(node: Node, out: Rewriter) -> None:
    """Split height and width into blocks, and move the sizes of the block to the channels."""
    data, block = node.inputs[0], node.attribute("blocksize")
    batch, channels, height, width = (dimension(data, axis, out) for axis in range(4))
    rows, columns = _scale(height, "Div", block, out), _scale(width, "Div", block, out)
    is_dcr = node.attribute("mode", b"DCR") == b"DCR"
    order = (0, 3, 5, 1, 2, 4) if is_dcr else (0, 1, 3, 5, 2, 4)
    sizes = (batch, _scale(channels, "Mul", block * block, out), rows, columns)
    _rearrange(node, (batch, channels, rows, block, columns, block), order, sizes, out)


def _scale(size: Dimension, op_type: str, factor: int, out: Rewriter) -> Dimension:
    if isinstance(size, int):
        return size * factor if op_type == "Mul" else size // factor
    return out.emit(op_type, [size, out.int64([factor])])


def _rearrange(
    node: Node, split: Sequence[Dimension], order: Sequence[int], sizes: Sequence[Dimension], out: Rewriter
) -> None:
    """Emit Reshape, Transpose and Reshape; a size may be 0."""
    parts = out.emit("Reshape", [node.inputs[0], shape_tensor(split, out)], allowzero=1)
    moved = out.emit("Transpose", [parts], perm=order)
    out.emit("Reshape", [moved, shape_tensor(sizes, out)], node.outputs, allowzero=1)
