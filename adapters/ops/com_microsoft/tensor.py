"""ExpandDims, Pad, Range, Rfft, NGramRepeatBlock and CropAndResize of com.microsoft.

NGramRepeatBlock excludes tokens that would repeat a sequence of `ngram_size` tokens. CropAndResize samples
images at the points of a grid in each box.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.expression import Expression, fold
from opshift.adapters.emit.quantization import as_scalar
from opshift.adapters.emit.shapes import INT64_MAX, computed_dimension, index_range, reshape


@adapter("ExpandDims", 1, 0, domain="com.microsoft")
def expand_expand_dims(node: Node, out: Rewriter) -> None:
    """Rewrite as Unsqueeze."""
    out = out.for_opset(13, "")
    constant = out.constant_value(node.inputs[1])
    axes = out.int64(constant.values) if constant else reshape(out.cast(node.inputs[1], "int64"), (-1,), out)
    out.emit("Unsqueeze", [node.inputs[0], axes], node.outputs)


@adapter("Pad", 1, 0, domain="com.microsoft")
def expand_pad(node: Node, out: Rewriter) -> None:
    """Rewrite as Pad of ONNX, with `pads` as a vector and the value as a scalar."""
    out = out.for_opset(13, "")
    data, pads, value = (node.input(position) for position in range(3))
    constant = out.constant_value(pads)
    if constant:
        pads = out.int64(constant.values)
    elif out.known_rank(pads) != 1:
        pads = reshape(pads, (-1,), out)
    values = [as_scalar(value, out)] if value else []
    out.emit("Pad", [data, pads, *values], node.outputs, **node.attributes)


@adapter("Range", 1, 0, domain="com.microsoft")
def expand_range(node: Node, out: Rewriter) -> None:
    """Rewrite as Range of scalars, with a step of 1 by default."""
    out = out.for_opset(11, "")
    delta = node.input(2)
    if not delta:
        element_type = out.element_type(node.inputs[0])
        delta = out.constant(1 if "int" in element_type else 1.0, element_type)
    out.emit("Range", [as_scalar(each, out) for each in (*node.inputs[:2], delta)], node.outputs)


@adapter("Rfft", 1, 0, domain="com.microsoft")
def expand_rfft(node: Node, out: Rewriter) -> None:
    """Rewrite as DFT of the last dimension."""
    for name, default, supported in (("signal_ndim", 1, 1), ("onesided", 1, 1), ("normalized", 0, 0)):
        if node.attribute(name, default) != supported:
            reason = f"{name} is {node.attribute(name)}, and kernels support only {supported}"
            raise CannotConvert(reason, "attribute.unsupported", subject=name)
    out = out.for_opset(20, "")
    signals = out.emit("Unsqueeze", [node.inputs[0], out.int64([-1])])
    out.emit("DFT", [signals], node.outputs, onesided=1)


OPSET = 13
"""Opset of the emitted nodes."""

NO_TOKEN = -1
"""Number in place of a token, to pad sequences at the front; as an index, -1 selects the last column."""


@adapter("NGramRepeatBlock", 1, 0, domain="com.microsoft")
def expand_n_gram_repeat_block(node: Node, out: Rewriter) -> None:
    """Rewrite as comparisons of all sequences with the last tokens, and ScatterElements of minus infinity."""
    out = out.for_opset(OPSET, "")
    ids, scores = node.inputs
    size = node.attribute("ngram_size")
    if size < 1:
        raise CannotConvert(f"ngram_size is {size}, but a sequence has at least one token", "node.invalid")
    # Padding ensures that there is a sequence; sequences with padding never equal the last tokens.
    padding = [out.int64([0, size, 0, 0]), out.int64(NO_TOKEN)]
    padded = out.emit("Pad", [ids, *padding])

    def tokens(start: int, end: int) -> str:
        """Emit the Slice of the padded input from `start` to `end`; 0 is the end of the input."""
        bounds = [out.int64([each]) for each in (start, end or INT64_MAX, 1)]
        return out.emit("Slice", [padded, *bounds])

    repeats = fold(
        "And",
        (
            out.emit("Equal", [tokens(place, place + 1 - size), tokens(place + 1 - size, place + 2 - size)])
            for place in range(size - 1)
        ),
        out,
    )
    excluded = tokens(size - 1, 0)
    if repeats:
        excluded = out.emit("Where", [repeats, excluded, out.int64(NO_TOKEN)])
    infinity = Tensor("float", (1,), (-math.inf,))
    updates = out.emit("ConstantOfShape", [out.emit("Shape", [excluded])], value=infinity)
    # Append a column (index -1) to the scores, for updates of sequences that differ from the last tokens.
    wider = out.emit("Pad", [scores, out.int64([0, 0, 0, 1])])
    changed = out.emit("ScatterElements", [wider, excluded, updates], axis=1)
    out.emit("Slice", [changed, *(out.int64([each]) for each in (0, -1, 1))], node.outputs)


class Images(NamedTuple):
    """Pixels (batch, rows, columns, channels), and the image index of each box, of shape (boxes, 1, 1)."""

    pixels: str
    of_box: Expression
    element_type: str


class Points(NamedTuple):
    """Points in pixels, and a mask of points in the image: (boxes, points, 1) or (boxes, 1, points)."""

    positions: Expression
    is_inside: str


@adapter("CropAndResize", 1, 0, domain="com.microsoft")
def expand_crop_and_resize(node: Node, out: Rewriter) -> None:
    """Rewrite as GatherND of the pixels around each point, and Where for points outside of the image.

    GridSample would give NaN for a point exactly on a pixel if the next pixel, with weight 0, is infinite.
    """
    out = out.for_opset(OPSET, "")
    data, boxes, indices = node.inputs[:3]
    top, left, bottom, right = out.emit_all("Split", [boxes], 4, axis=1)
    rows, columns = (
        _sampling_points(node, 0, (top, bottom), out),
        _sampling_points(node, 1, (left, right), out),
    )
    pixels = out.emit("Transpose", [data], perm=(0, 2, 3, 1))
    of_box = Expression(_unsqueeze(out.cast(indices, "int64"), (1, 2), out), "int64", out)
    images = Images(pixels, of_box, out.element_type(data))
    is_nearest = node.attribute("mode", b"bilinear") == b"nearest"
    sample = _sample_nearest if is_nearest else _sample_bilinear
    sampled = sample(images, rows.positions, columns.positions, out)
    inside = _unsqueeze(out.emit("And", [rows.is_inside, columns.is_inside]), (3,), out)
    outside = out.constant(node.attribute("extrapolation_value", 0.0), images.element_type)
    result = out.emit("Where", [inside, sampled, outside])
    out.emit("Transpose", [result], node.outputs, perm=(0, 3, 1, 2))


def _sampling_points(node: Node, axis: int, ends: tuple[str, str], out: Rewriter) -> Points:
    """Return the points along an axis; points outside of the image are moved to the first pixel."""
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


def _sample_nearest(images: Images, rows: Expression, columns: Expression, out: Rewriter) -> str:
    row, column = ((each + 0.5).apply("Floor").cast("int64") for each in (rows, columns))
    return _gather_pixels(images, row, column, out).name


def _sample_bilinear(images: Images, rows: Expression, columns: Expression, out: Rewriter) -> str:
    """Interpolate between columns, and then between rows, as the kernel does."""
    (upper, lower), down = _neighbors(rows, images.element_type, out)
    (left, right), across = _neighbors(columns, images.element_type, out)

    def between_columns(row: Expression) -> Expression:
        first, second = (_gather_pixels(images, row, column, out) for column in (left, right))
        return first + (second - first) * across

    first, second = between_columns(upper), between_columns(lower)
    return (first + (second - first) * down).name


def _neighbors(
    points: Expression, element_type: str, out: Rewriter
) -> tuple[tuple[Expression, Expression], Expression]:
    """Return the pixels before and after each point, and the weight of the pixel after the point.

    If a point is exactly on a pixel, both are this pixel.
    """
    before, after = points.apply("Floor"), points.apply("Ceil")
    weight = _unsqueeze((points - before).name, (3,), out)
    return (before.cast("int64"), after.cast("int64")), Expression(weight, element_type, out)


def _gather_pixels(images: Images, row: Expression, column: Expression, out: Rewriter) -> Expression:
    """Return the channels of the pixels at `row` and `column`, which broadcast with `images.of_box`."""
    zeros = (images.of_box + row + column) * 0
    listed = [_unsqueeze((each + zeros).name, (3,), out) for each in (images.of_box, row, column)]
    gathered = out.emit("GatherND", [images.pixels, out.emit("Concat", listed, axis=3)])
    return Expression(gathered, images.element_type, out)
