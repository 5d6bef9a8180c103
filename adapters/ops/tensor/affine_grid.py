"""AffineGrid (introduced in opset 20): evenly spaced points, transformed by a matrix per sample."""

from __future__ import annotations

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.adapters.emit.shapes import (
    MAX_CONSTANT_ELEMENTS,
    Dimension,
    dimension_tensor,
    index_range,
    reshape,
)
from opshift.model.errors import CannotConvert
from opshift.model.node import Node


@adapter("AffineGrid", 20, 19)
def expand_affine_grid(node: Node, out: Rewriter) -> None:
    """Rewrite as each matrix column times the positions along one axis, plus the last column.

    The first column belongs to the last axis, the width.
    """
    theta = node.inputs[0]
    axes = _axis_count(node, out)
    grid = _column(theta, axes, axes, out)
    for axis in range(axes):
        positions = _positions(node, axis, out)
        shape = [1] * (axes + 2)
        shape[1 + axis] = -1
        column = reshape(positions, shape, out)
        product = out.emit("Mul", [column, _column(theta, axes - 1 - axis, axes, out)])
        grid = out.emit("Add", [product, grid], node.outputs if axis == axes - 1 else 1)


def _axis_count(node: Node, out: Rewriter) -> int:
    """Return 2 for images and 3 for volumes."""
    size, theta = out.shape(node.inputs[1]), out.shape(node.inputs[0])
    if size is not None and size[0] is not None:
        return size[0] - 2
    if theta is not None and len(theta) == 3 and theta[1] is not None:
        return theta[1]
    raise CannotConvert(
        "whether the grid has 2 or 3 dimensions is unknown", remedy=f"declare the shape of {node.inputs[0]!r}"
    )


def _column(theta: str, index: int, axes: int, out: Rewriter) -> str:
    """Return one column of every matrix, to be broadcast over all points."""
    column = out.emit("Gather", [theta, out.int64(index)], axis=2)
    return reshape(column, (-1, *[1] * axes, axes), out)


def _positions(node: Node, axis: int, out: Rewriter) -> str:
    """Return positions in [-1, 1]: centers of the outer points if `align_corners`, else outer edges."""
    element_type = out.element_type(node.inputs[0])
    corners = bool(node.attribute("align_corners", 0))
    size = _size(node, axis, out)
    if size == 1 and corners:
        raise CannotConvert(
            "align_corners is 1, but one point between two corners has no defined position",
            remedy="set align_corners to 0",
        )
    if isinstance(size, int) and size <= MAX_CONSTANT_ELEMENTS:
        step, first = (2 / (size - 1), -1.0) if corners else (2 / size, 1 / size - 1)
        return out.constant(tuple(first + step * index for index in range(size)), element_type)
    return _computed_positions(dimension_tensor(size, out), corners, element_type, out)


def _size(node: Node, axis: int, out: Rewriter) -> Dimension:
    """Return the number of points along an axis; `size` starts with samples and channels."""
    known = out.constant_value(node.inputs[1])
    if known is not None:
        return int(known.values[2 + axis])
    return out.emit("Gather", [node.inputs[1], out.int64([2 + axis])], axis=0)


def _computed_positions(count: str, corners: bool, element_type: str, out: Rewriter) -> str:
    """Return `1 - 2 * (count - 1 - i) / (count - 1)` with `corners`, else `(2 * i + 1) / count - 1`.

    The position of a single point between corners is undefined; onnxruntime places it at 1, the last corner.
    """
    two, one = out.constant(2.0, "double"), out.constant(1.0, "double")
    indices, points = (out.cast(name, "double") for name in (index_range(count, out), count))
    doubled = out.emit("Mul", [indices, two])
    if corners:
        intervals = out.emit("Sub", [points, one])
        remaining = out.emit("Sub", [out.emit("Mul", [intervals, two]), doubled])
        position = out.emit("Sub", [one, out.emit("Div", [remaining, _at_least_one(intervals, out)])])
    else:
        position = out.emit("Sub", [out.emit("Div", [out.emit("Add", [doubled, one]), points]), one])
    return out.cast(position, element_type)


def _at_least_one(count: str, out: Rewriter) -> str:
    """Return the maximum of a float count and 1, computed in float: old runtimes lack Max for double."""
    as_float = out.cast(count, "float")
    greater = out.emit("Max", [as_float, out.constant(1.0, "float")], opset=8)
    return out.cast(greater, "double")
