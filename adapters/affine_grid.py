"""AffineGrid came at 20: positions of evenly spaced points, turned and moved by a matrix for each sample."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.ranges import LONGEST, positions_below
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import Size, as_list, reshaped
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME


@adapter("AffineGrid", 20, 19)
def grid_is_a_sum_of_columns(node: Node, out: Rewriter) -> None:
    """Each column of the matrix times the positions along one axis, plus the last column.

    The first column belongs to the last axis, the width.
    """
    theta = node.inputs[0]
    axes = _axis_count(node, out)
    grid = _column(theta, axes, axes, out)
    for axis in range(axes):
        positions = _positions(node, axis, out)
        across = [1] * (axes + 2)
        across[1 + axis] = -1
        along = reshaped(positions, across, out)
        product = out.emit("Mul", [along, _column(theta, axes - 1 - axis, axes, out)])
        grid = out.emit("Add", [product, grid], node.outputs if axis == axes - 1 else 1)


def _axis_count(node: Node, out: Rewriter) -> int:
    """2 for images and 3 for volumes."""
    size, theta = out.shape(node.inputs[1]), out.shape(node.inputs[0])
    if size is not None and size[0] is not None:
        return size[0] - 2
    if theta is not None and len(theta) == 3 and theta[1] is not None:
        return theta[1]
    raise CannotConvert(
        "whether the grid is flat or a volume is not known", remedy=f"state the shape of {node.inputs[0]!r}"
    )


def _column(theta: str, index: int, axes: int, out: Rewriter) -> str:
    """One column of every matrix, for all points."""
    column = out.emit("Gather", [theta, out.constant(index, "int64")], axis=2)
    return reshaped(column, (-1, *[1] * axes, axes), out)


def _positions(node: Node, axis: int, out: Rewriter) -> str:
    """From -1 to 1: the centres of the outer points if `align_corners`, else their outer edges."""
    element_type = out.element_type(node.inputs[0])
    corners = bool(node.attribute("align_corners", 0))
    size = _size(node, axis, out)
    if size == 1 and corners:
        raise CannotConvert("one point between two corners has no place", remedy="set align_corners to 0")
    if isinstance(size, int) and size <= LONGEST:
        step, first = (2 / (size - 1), -1.0) if corners else (2 / size, 1 / size - 1)
        return out.constant(tuple(first + step * index for index in range(size)), element_type)
    return _computed_positions(as_list(size, out), corners, element_type, out)


def _size(node: Node, axis: int, out: Rewriter) -> Size:
    """The number of points along an axis; `size` starts with samples and channels."""
    known = out.constant_value(node.inputs[1])
    if known is not None:
        return int(known.values[2 + axis])
    return out.emit("Gather", [node.inputs[1], out.constant([2 + axis], "int64")], axis=0)


def _computed_positions(count: str, corners: bool, element_type: str, out: Rewriter) -> str:
    """`1 - 2 * (count - 1 - i) / (count - 1)`, or `(2 * i + 1) / count - 1`.

    Between corners a single point has no place of its own; onnxruntime puts it on the last.
    """
    two, one = out.constant(2.0, "double"), out.constant(1.0, "double")
    index, points = (
        out.emit("Cast", [name], to=BY_NAME["double"].number) for name in (positions_below(count, out), count)
    )
    twice = out.emit("Mul", [index, two])
    if corners:
        gaps = out.emit("Sub", [points, one])
        left = out.emit("Sub", [out.emit("Mul", [gaps, two]), twice])
        place = out.emit("Sub", [one, out.emit("Div", [left, _at_least_one(gaps, out)])])
    else:
        place = out.emit("Sub", [out.emit("Div", [out.emit("Add", [twice, one]), points]), one])
    return out.emit("Cast", [place], to=BY_NAME[element_type].number)


def _at_least_one(count: str, out: Rewriter) -> str:
    """A whole number, or one; compared as float, which runtimes of old opsets have Max for."""
    whole = out.emit("Cast", [count], to=BY_NAME["float"].number)
    greater = out.emit("Max", [whole, out.constant(1.0, "float")], opset=8)
    return out.emit("Cast", [greater], to=BY_NAME["double"].number)
