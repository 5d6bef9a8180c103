"""CropAndResize of onnxruntime: samples of images at the points of a grid in each box."""

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.shapes import computed_dimension, index_range

OPSET = 13
"""Opset of the emitted nodes."""


class Images(NamedTuple):
    """Pixels of shape (batch, rows, columns, channels), and the image of each box, of shape (boxes, 1, 1)."""

    pixels: str
    of_box: Expression
    element_type: str


class Points(NamedTuple):
    """Points of each box along an axis, in pixels, of shape (boxes, points, 1) or (boxes, 1, points)."""

    positions: Expression
    is_inside: str


@adapter("CropAndResize", 1, 0, domain="com.microsoft")
def expand_crop_and_resize(node: Node, out: Rewriter) -> None:
    """Rewrite as GatherND of the pixels around each point, and Where for points outside of the image.

    GridSample would multiply the pixel after a point by 0, and fail if that is infinite.
    """
    out = out.for_opset(OPSET, "")
    data, boxes, indices = node.inputs[:3]
    top, left, bottom, right = out.emit_all("Split", [boxes], 4, axis=1)
    rows, columns = _points(node, 0, (top, bottom), out), _points(node, 1, (left, right), out)
    pixels = out.emit("Transpose", [data], perm=(0, 2, 3, 1))
    of_box = Expression(_unsqueeze(out.cast(indices, "int64"), (1, 2), out), "int64", out)
    images = Images(pixels, of_box, out.element_type(data))
    is_nearest = node.attribute("mode", b"bilinear") == b"nearest"
    sample = _nearest if is_nearest else _interpolated
    sampled = sample(images, rows.positions, columns.positions, out)
    inside = _unsqueeze(out.emit("And", [rows.is_inside, columns.is_inside]), (3,), out)
    outside = out.constant(node.attribute("extrapolation_value", 0.0), images.element_type)
    result = out.emit("Where", [inside, sampled, outside])
    out.emit("Transpose", [result], node.outputs, perm=(0, 3, 1, 2))


def _points(node: Node, axis: int, ends: tuple[str, str], out: Rewriter) -> Points:
    """Return the points along an axis; those outside of the image are moved to its first pixel."""
    data, sizes = node.inputs[0], node.inputs[3]
    element_type = out.element_type(data)
    start, end = (Expression(name, element_type, out) for name in ends)
    length = Expression(out.cast(computed_dimension(data, axis + 2, out), element_type), element_type, out)
    extent = length - 1
    count = out.cast(out.emit("Gather", [sizes, out.int64([axis])]), "int64")
    steps = Expression(out.cast(count, element_type), element_type, out) - 1
    position = Expression(out.cast(index_range(count, out), element_type), element_type, out)
    points = start * extent + position * ((end - start) * extent / steps)
    middle = (start + end) * 0.5 * extent
    has_steps = out.emit("Greater", [steps.name, steps.constant(0).name])
    points = Expression(out.emit("Where", [has_steps, points.name, middle.name]), element_type, out)
    points = Expression(_unsqueeze(points.name, (2 - axis,), out), element_type, out)
    below = out.emit("Less", [points.name, points.constant(0).name])
    inside = out.emit("Not", [out.emit("Or", [below, out.emit("Greater", [points.name, extent.name])])])
    kept = out.emit("Where", [inside, points.name, points.constant(0).name])
    return Points(Expression(kept, element_type, out), inside)


def _unsqueeze(value: str, axes: Sequence[int], out: Rewriter) -> str:
    return out.emit("Unsqueeze", [value, out.int64(axes)])


def _nearest(images: Images, rows: Expression, columns: Expression, out: Rewriter) -> str:
    row, column = ((each + 0.5).apply("Floor").cast("int64") for each in (rows, columns))
    return _gather(images, row, column, out).name


def _interpolated(images: Images, rows: Expression, columns: Expression, out: Rewriter) -> str:
    """Interpolate between columns, and then between rows, as the kernel does."""
    (upper, lower), down = _neighbors(rows, images.element_type, out)
    (left, right), across = _neighbors(columns, images.element_type, out)

    def between_columns(row: Expression) -> Expression:
        first, second = (_gather(images, row, column, out) for column in (left, right))
        return first + (second - first) * across

    first, second = between_columns(upper), between_columns(lower)
    return (first + (second - first) * down).name


def _neighbors(
    points: Expression, element_type: str, out: Rewriter
) -> tuple[tuple[Expression, Expression], Expression]:
    """Return the pixels before and after each point, and the weight of the pixel after it.

    Both are the same pixel if the point is one.
    """
    before, after = points.apply("Floor"), points.apply("Ceil")
    weight = _unsqueeze((points - before).name, (3,), out)
    return (before.cast("int64"), after.cast("int64")), Expression(weight, element_type, out)


def _gather(images: Images, row: Expression, column: Expression, out: Rewriter) -> Expression:
    """Return the channels of the pixels at rows and columns, which broadcast."""
    zeros = (images.of_box + row + column) * 0
    listed = [_unsqueeze((each + zeros).name, (3,), out) for each in (images.of_box, row, column)]
    gathered = out.emit("GatherND", [images.pixels, out.emit("Concat", listed, axis=3)])
    return Expression(gathered, images.element_type, out)
