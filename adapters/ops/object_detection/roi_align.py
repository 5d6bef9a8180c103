"""RoiAlign: the default coordinates are shifted by half a pixel (`half_pixel`) since opset 16.

For opsets before 10, which introduced RoiAlign, the node becomes sums or maxima of weighted pixels.
"""

from itertools import product
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.expression import Expression, cast, cast_between, cast_output, fold
from opshift.adapters.emit.shapes import (
    MAX_CONSTANT_ELEMENTS,
    Dimension,
    dimension,
    dimension_tensor,
    index_range,
    reshape,
    shape_tensor,
)
from opshift.adapters.emit.subgraphs import LoopBuilder
from opshift.model.element_types import round_to_float32

OPSET = 13
"""Opset of the emitted nodes."""


class Pixels(NamedTuple):
    """Index and weight of one pixel along one axis, for each box and sample."""

    position: str
    """Index along the axis; `_pool` replaces a row index by the row's first index in the table."""
    weight: str


class Pooling(NamedTuple):
    """Table of pixels, and settings of the node for all boxes."""

    table: str
    """Table with one row for each pixel, which has the channels of the pixel."""
    sizes: tuple[Dimension, Dimension]
    """Height and width of an image."""
    channels: Dimension
    bins: tuple[int, int]
    """Number of bins along each axis of the output."""
    samples: int
    """Number of samples in each bin along an axis; 0 means the size of the bin in pixels, rounded up."""
    keeps_small: bool
    """Whether boxes smaller than a pixel keep their size; otherwise they are enlarged to a pixel."""
    is_average: bool
    element_type: str


@adapter("RoiAlign", 10, 9)
def gather_samples(node: Node, out: Rewriter) -> None:
    """Emit the sum, or in mode `max` the maximum, of the four weighted pixels around each sample."""
    sample_boxes(node, 0.0, out)


def sample_boxes(node: Node, offset: float, out: Rewriter) -> None:
    """Emit the pooled boxes, moved by `-offset` pixels; if `offset` is 0, boxes are at least 1 pixel wide.

    Raises:
        CannotConvert: an axis has more than `MAX_CONSTANT_ELEMENTS` samples.
    """
    out = out.for_opset(OPSET)
    data, boxes, batches = node.inputs
    samples = max(node.attribute("sampling_ratio", 0), 0)
    bins = node.attribute("output_height", 1), node.attribute("output_width", 1)
    if max(bins) * max(samples, 1) > MAX_CONSTANT_ELEMENTS:
        reason = f"the node samples more than {MAX_CONSTANT_ELEMENTS} points along an axis"
        raise CannotConvert(reason, "limit.exceeded", remedy="reduce sampling_ratio or the output size")
    element_type = out.element_type(data)
    compute_type = "double" if element_type == "double" else "float"
    wide_data, wide_boxes = (cast_between(name, element_type, compute_type, out) for name in (data, boxes))
    count = dimension(boxes, 0, out)
    channels, height, width = (dimension(data, axis, out) for axis in (1, 2, 3))
    if channels == 0:
        # Without channels, the table is empty, and Reshape infers no size of empty data.
        shape = shape_tensor((count, 0, *bins), out)
        out.emit("ConstantOfShape", [shape], node.outputs, value=Tensor(element_type, (1,), (0.0,)))
        return
    scaled = Expression(wide_boxes, compute_type, out) * node.attribute("spatial_scale", 1.0)
    corners = (scaled - offset if offset else scaled).name
    table = reshape(out.emit("Transpose", [wide_data], perm=[0, 2, 3, 1]), (-1, channels), out)
    is_average = node.attribute("mode", b"avg") == b"avg"
    pooling = Pooling(table, (height, width), channels, bins, samples, bool(offset), is_average, compute_type)
    if samples:
        pooled = _pool(corners, batches, count, pooling, out)
    else:
        pooled = _pool_each_box(corners, batches, count, pooling, out)
    cast_output(pooled, compute_type, element_type, node, out)


def _pool_each_box(corners: str, batches: str, count: Dimension, pooling: Pooling, out: Rewriter) -> str:
    """Pool box by box in a Loop, because the number of samples differs between boxes."""
    body = LoopBuilder(out)
    index = reshape(body.iteration, (1,), body)
    box, batch = (body.emit("Gather", [name, index], axis=0) for name in (corners, batches))
    # Flattened, because onnx.reference stacks only 1-D tensors correctly.
    body.output(reshape(_pool(box, batch, 1, pooling, body), (-1,), body), pooling.element_type, (None,))
    (stacked,) = body.emit_loop(dimension_tensor(count, out), (), out)
    return reshape(stacked, (count, pooling.channels, *pooling.bins), out)


def _pool(corners: str, batches: str, count: Dimension, pooling: Pooling, out: Rewriter) -> str:
    """Emit the pooled boxes: (boxes, channels, rows, columns)."""
    rows, row_samples = _sample_axis(corners, 0, pooling, out)
    columns, column_samples = _sample_axis(corners, 1, pooling, out)
    height, width = (dimension_tensor(size, out) for size in pooling.sizes)
    first = out.emit("Mul", [reshape(batches, (-1, 1, 1), out), out.emit("Mul", [height, width])])
    rows = [
        row._replace(position=out.emit("Add", [first, out.emit("Mul", [row.position, width])]))
        for row in rows
    ]
    terms = (_term(pooling.table, row, column, out) for row, column in product(rows, columns))
    total = fold("Add" if pooling.is_average else "Max", terms, out)
    height_bins, width_bins = pooling.bins
    shape = (count, height_bins, row_samples, width_bins, column_samples, pooling.channels)
    split = out.emit("Reshape", [total, shape_tensor(shape, out)])
    reduced = out.emit("ReduceMean" if pooling.is_average else "ReduceMax", [split], axes=[2, 4], keepdims=0)
    return out.emit("Transpose", [reduced], perm=[0, 3, 1, 2])


def _term(table: str, row: Pixels, column: Pixels, out: Rewriter) -> str:
    """Return weighted pixels, one for each sample, of shape (boxes, rows, columns, channels)."""
    pixels = out.emit("Gather", [table, out.emit("Add", [row.position, column.position])], axis=0)
    return out.emit("Mul", [pixels, out.emit("Mul", [row.weight, column.weight])])


def _sample_axis(corners: str, axis: int, pooling: Pooling, out: Rewriter) -> tuple[list[Pixels], Dimension]:
    """Return the lower and the upper pixel of each sample along an axis, and the number of samples in a bin.

    Positions have the shape (boxes, samples, 1) for rows, and (boxes, 1, samples) for columns.
    """
    element_type, bins, size = pooling.element_type, pooling.bins[axis], pooling.sizes[axis]
    # Columns of a box: x1, y1, x2, y2.
    start, end = (
        Expression(out.emit("Gather", [corners, out.int64([index])], axis=1), element_type, out)
        for index in (1 - axis, 3 - axis)
    )
    extent = end - start if pooling.keeps_small else (end - start).apply("Max", 1.0)
    step = extent / bins
    if isinstance(size, int):
        length = start.constant(float(size))
    else:
        length = Expression(cast(size, element_type, out), element_type, out)
    samples: Dimension = pooling.samples
    # In the order of onnxruntime's computation, so that results are rounded equally.
    if pooling.samples:
        bin_numbers = start.constant(
            [float(number) for number in range(bins) for _ in range(pooling.samples)]
        )
        offsets = start.constant([sample + 0.5 for _ in range(bins) for sample in range(pooling.samples)])
        coordinate = start + step * bin_numbers + step * offsets / float(pooling.samples)
    else:
        # A box without extent gets one sample, of weight 0.
        sample_count = step.apply("Ceil").apply("Max", 1.0)
        samples = reshape(cast(sample_count.name, "int64", out), (1,), out)
        numbers = cast(index_range(out.emit("Mul", [samples, out.int64([bins])]), out), element_type, out)
        positions = Expression(numbers, element_type, out)
        bin_numbers = ((positions + 0.5) / sample_count).apply("Floor")
        offsets = positions - bin_numbers * sample_count + 0.5
        coordinate = start + step * bin_numbers + step * offsets / sample_count
    is_outside = coordinate.apply("Less", -1.0).apply("Or", coordinate.apply("Greater", length))
    is_inside = is_outside.apply("Not")
    if pooling.keeps_small and not pooling.samples:
        is_inside = is_inside.apply("And", step.apply("Greater", 0.0))
    weight = is_inside.cast(element_type)
    inner = coordinate.apply("Max", 0.0).apply("Min", length - 1.0)
    lower = inner.apply("Floor")
    fraction = inner - lower
    upper = (lower + 1.0).apply("Min", length - 1.0)
    # For 0 boxes, Reshape cannot infer a dimension.
    position_count = bins * pooling.samples or -1
    shape = (0, 1, position_count) if axis else (0, position_count, 1)
    return [
        Pixels(reshape(cast(pixel.name, "int64", out), shape, out), reshape(each.name, (*shape, 1), out))
        for pixel, each in ((lower, (1.0 - fraction) * weight), (upper, fraction * weight))
    ], samples


HALF_PIXEL = 0.5

MODE_ATTRIBUTE = "coordinate_transformation_mode"


@adapter("RoiAlign", 16, 10)
def shift_boxes(node: Node, out: Rewriter) -> None:
    """Scale constant boxes and shift them by half a pixel; rewrite computed or small boxes as sums of pixels.

    Scaled boxes have exactly the coordinates that version 16 computes, so that the number of samples, which
    depends on the sizes of the boxes, is the same.
    """
    attributes = node.without(MODE_ATTRIBUTE)
    if node.attribute(MODE_ATTRIBUTE, b"half_pixel") == b"output_half_pixel":
        out.replace(node, attributes=attributes)
        return
    data, boxes, batches = node.inputs
    element_type = out.element_type(data)
    # float16 does not represent every shifted box.
    compute_type = "double" if element_type == "double" else "float"
    rounded = float if compute_type == "double" else round_to_float32
    scale = node.attribute("spatial_scale", 1.0)
    constant = out.constant_value(boxes)
    values = constant.values if constant is not None else ()
    corners = tuple(rounded(rounded(corner * scale) - HALF_PIXEL) for corner in values)
    # Version 10 enlarges boxes that are smaller than a pixel.
    is_small = any(corners[i + 2] - corners[i] < 1 for i in range(len(corners)) if i % 4 < 2)
    if constant is None or is_small:
        sample_boxes(node, HALF_PIXEL, out)
        return
    moved = out.tensor(Tensor(compute_type, constant.dims, corners))
    wide = data if compute_type == element_type else out.cast(data, compute_type)
    pooled = node.outputs[0] if wide == data else out.fresh("pooled")
    attributes["spatial_scale"] = 1.0
    out.replace(node, inputs=[wide, moved, batches], outputs=[pooled], attributes=attributes)
    if wide != data:
        out.cast(pooled, element_type, node.outputs)
