"""CropAndResize of onnxruntime: samples of images at the points of a grid in each box."""

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.shapes import computed_dimension, index_range

OPSET = 16
"""Opset of the emitted nodes, which introduced GridSample."""


@adapter("CropAndResize", 1, 0, domain="com.microsoft")
def expand_crop_and_resize(node: Node, out: Rewriter) -> None:
    """Rewrite as GridSample of one image per box, and Where for points outside of the image."""
    out = out.for_opset(OPSET, "")
    data, boxes, indices = node.inputs[:3]
    images = out.emit("Gather", [data, indices])
    top, left, bottom, right = out.emit_all("Split", [boxes], 4, axis=1, opset=13)
    is_nearest = node.attribute("mode", b"bilinear") == b"nearest"
    rows, row_inside = _points(node, 0, (top, bottom), is_nearest, out)
    columns, column_inside = _points(node, 1, (left, right), is_nearest, out)
    row_axis, column_axis = out.int64([2]), out.int64([1])
    down = Expression(out.emit("Unsqueeze", [rows, row_axis]), out.element_type(data), out)
    across = Expression(out.emit("Unsqueeze", [columns, column_axis]), out.element_type(data), out)
    last = out.int64([-1])
    grid = [out.emit("Unsqueeze", [each.name, last]) for each in (across + down * 0, down + across * 0)]
    sampled = out.emit(
        "GridSample",
        [images, out.emit("Concat", grid, axis=-1)],
        align_corners=1,
        mode=b"nearest" if is_nearest else b"bilinear",
        padding_mode=b"border",
    )
    inside = out.emit(
        "And",
        [
            out.emit("Unsqueeze", [row_inside, row_axis]),
            out.emit("Unsqueeze", [column_inside, column_axis]),
        ],
    )
    outside = out.constant(node.attribute("extrapolation_value", 0.0), out.element_type(data))
    out.emit("Where", [out.emit("Unsqueeze", [inside, column_axis]), sampled, outside], node.outputs)


def _points(node: Node, axis: int, ends: tuple[str, str], is_nearest: bool, out: Rewriter) -> tuple[str, str]:
    """Return the points of each box along an axis, from -1 to 1, and whether they are inside of the image."""
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
    points = Expression(
        out.emit(
            "Where", [out.emit("Greater", [steps.name, steps.constant(0).name]), points.name, middle.name]
        ),
        element_type,
        out,
    )
    below = out.emit("Less", [points.name, points.constant(0).name])
    inside = out.emit("Not", [out.emit("Or", [below, out.emit("Greater", [points.name, extent.name])])])
    if is_nearest:
        points = (points + 0.5).apply("Floor")
    return (points * 2 / extent.apply("Max", 1) - 1).name, inside
