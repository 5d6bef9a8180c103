"""RoiAlign with a fixed number of samples per bin, as a weighted sum of gathered pixels."""

from itertools import product
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.cast import cast, cast_between, cast_output
from opshift.adapters.emit.expression import Expression, fold
from opshift.adapters.emit.shapes import (
    MAX_CONSTANT_ELEMENTS,
    Dimension,
    dimension,
    dimension_tensor,
    reshape,
    shape_tensor,
)

OPSET = 13
"""Opset of the emitted nodes."""


class Pixels(NamedTuple):
    """Pixel along one axis, and its weight, for each box and sample."""

    position: str
    """Index along the axis; for rows the index of the first pixel in the table."""
    weight: str


@adapter("RoiAlign", 10, 9)
def gather_samples(node: Node, out: Rewriter) -> None:
    """Gather the four pixels around each sample; the number of samples per bin must be fixed."""
    sample_boxes(node, 0.0, out)


def sample_boxes(node: Node, offset: float, out: Rewriter) -> None:
    """Emit the samples of boxes shifted by an offset; without one, boxes are at least one pixel wide.

    Raises:
        CannotConvert: the number of samples depends on the size of each box, or is large.
    """
    out = out.for_opset(OPSET)
    data, boxes, batches = node.inputs
    samples = node.attribute("sampling_ratio", 0)
    bins = [node.attribute(f"output_{name}", 1) for name in ("height", "width")]
    if samples <= 0:
        reason = "the number of samples depends on the size of each box (sampling_ratio is 0)"
        raise CannotConvert(reason, remedy="set sampling_ratio to a number of samples")
    if max(bins) * samples > MAX_CONSTANT_ELEMENTS:
        reason = f"it samples more than {MAX_CONSTANT_ELEMENTS} points along an axis"
        raise CannotConvert(reason, remedy="reduce sampling_ratio or the output size")
    element_type = out.element_type(data)
    compute_type = "double" if element_type == "double" else "float"
    wide_data, wide_boxes = (cast_between(name, element_type, compute_type, out) for name in (data, boxes))
    channels, *sizes = (dimension(data, axis, out) for axis in (1, 2, 3))
    scaled = Expression(wide_boxes, compute_type, out) * node.attribute("spatial_scale", 1.0)
    corners = (scaled - offset if offset else scaled).name
    sampled = [
        _sample_axis(corners, axis, (bins[axis], samples, bool(offset)), sizes[axis], compute_type, out)
        for axis in (0, 1)
    ]
    table = reshape(out.emit("Transpose", [wide_data], perm=[0, 2, 3, 1]), (-1, channels), out)
    height, width = (dimension_tensor(size, out) for size in sizes)
    first = out.emit("Mul", [reshape(batches, (-1, 1, 1), out), out.emit("Mul", [height, width])])
    rows = [
        row._replace(position=out.emit("Add", [first, out.emit("Mul", [row.position, width])]))
        for row in sampled[0]
    ]
    pooled = (dimension(boxes, 0, out), bins[0], samples, bins[1], samples, channels)
    shape = shape_tensor(pooled, out)
    is_average = node.attribute("mode", b"avg") == b"avg"
    terms = (_term(table, row, column, out) for row, column in product(rows, sampled[1]))
    total = fold("Add" if is_average else "Max", terms, out)
    split = out.emit("Reshape", [total, shape])
    reduced = out.emit("ReduceMean" if is_average else "ReduceMax", [split], axes=[2, 4], keepdims=0)
    cast_output(out.emit("Transpose", [reduced], perm=[0, 3, 1, 2]), compute_type, element_type, node, out)


def _term(table: str, row: Pixels, column: Pixels, out: Rewriter) -> str:
    """Return one of the four pixels around each sample, times its weight: box, row, column, channel."""
    pixels = out.emit("Gather", [table, out.emit("Add", [row.position, column.position])], axis=0)
    return out.emit("Mul", [pixels, out.emit("Mul", [row.weight, column.weight])])


def _sample_axis(
    corners: str,
    axis: int,
    sampling: tuple[int, int, bool],
    size: Dimension,
    element_type: str,
    out: Rewriter,
) -> list[Pixels]:
    """Return the lower and the upper pixel of each sample along an axis: (boxes, rows, columns)."""
    bins, samples, keeps_small = sampling
    # A box is x1, y1, x2, y2.
    start, end = (
        Expression(out.emit("Gather", [corners, out.int64([index])], axis=1), element_type, out)
        for index in (1 - axis, 3 - axis)
    )
    extent = end - start if keeps_small else (end - start).apply("Max", 1.0)
    step = extent / bins
    # In the order of onnxruntime, for equal rounding.
    bin_numbers = start.constant([float(number) for number in range(bins) for _ in range(samples)])
    offsets = start.constant([sample + 0.5 for _ in range(bins) for sample in range(samples)])
    coordinate = start + step * bin_numbers + step * offsets / float(samples)
    if isinstance(size, int):
        length = start.constant(float(size))
    else:
        length = Expression(cast(size, element_type, out), element_type, out)
    is_outside = coordinate.apply("Less", -1.0).apply("Or", coordinate.apply("Greater", length))
    is_inside = is_outside.apply("Not").cast(element_type)
    inner = coordinate.apply("Max", 0.0).apply("Min", length - 1.0)
    lower = inner.apply("Floor")
    fraction = inner - lower
    upper = (lower + 1.0).apply("Min", length - 1.0)
    count = bins * samples
    shape = (0, 1, count) if axis else (0, count, 1)
    return [
        Pixels(reshape(cast(pixel.name, "int64", out), shape, out), reshape(weight.name, (*shape, 1), out))
        for pixel, weight in ((lower, (1.0 - fraction) * is_inside), (upper, fraction * is_inside))
    ]
