"""Adapters of Upsample and Resize: versions differ in inputs, and in the mapping of output to input pixels.

If a version lacks a mapping, the pixels are computed by Gather and arithmetic, which every opset supports.
"""

from collections.abc import Mapping, Sequence
from math import prod

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, UnknownShape, adapter
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import fold
from opshift.adapters.emit.pixel_table import COMPUTE_TYPES
from opshift.adapters.ops.tensor.resize_request import (
    ERROR,
    STRETCH,
    ResizeRequest,
    equivalent_scales,
    has_constant_axes,
    has_integer_scales,
    read_axes,
    read_request,
    repeats_pixels,
    runtime_difference,
    text_attribute,
)
from opshift.adapters.ops.tensor.resize_samples import (
    OPSET,
    ResizeAxis,
    ResizeTap,
    Sampling,
    WeightMatrix,
    has_same_samples,
    is_unchanged,
    sample_axis,
)

MATRIX_DIFFERENCE = (
    "each pixel of the result is a weighted sum of all pixels, so that one infinite or NaN pixel may make "
    "all of them NaN"
)
"""Deviation of a resize by a matrix: infinity multiplied by a weight of 0 is NaN."""

MAX_PRODUCTS = 1 << 20
"""Maximum product of the number of elements of the data and the number of pixels of a weight matrix for which
`_add_products` replaces MatMul; the size of the output is unknown."""


def expand_resize(node: Node, out: Rewriter) -> None:
    """Emit nodes that compute the same pixels as a Resize or Upsample of any version."""
    out = out.for_opset(OPSET)
    request = read_request(node, out)
    element_type, compute_type = _types(request, out)
    axes = read_axes(node, request, out)
    _require_known_filters(axes, request)
    if difference := runtime_difference(axes, request):
        out.allow("approximate", difference)
    data = request.data if element_type == compute_type else out.cast(request.data, compute_type)
    changed = {axis: each for axis, each in axes.items() if not is_unchanged(each, request.sampling)}
    sampled = {axis: sample_axis(each, request.sampling, out) for axis, each in changed.items()}
    if request.sampling.mode == "nearest" and not any(map(_shrinks, changed.values())):
        # The order of the axes does not matter: enlarge the last axis first, to copy whole rows later.
        sampled = dict(reversed(sampled.items()))
    shape = out.known_shape(request.data)
    for axis, samples in sampled.items():
        if samples.matrix is not None:
            is_small = shape is not None and prod(shape) * len(samples.matrix.pixels) <= MAX_PRODUCTS
            if not is_small:
                out.allow("approximate", MATRIX_DIFFERENCE)
            multiply = _add_products if is_small else _multiply
            data = multiply(data, axis, request.rank, samples.matrix, compute_type, out)
            continue
        data = _weighted_sum(data, axis, samples.taps, request.rank - 1 - axis, compute_type, out)
    masks = {axis: each.inside for axis, each in sampled.items() if not each.is_all_inside()}
    if masks:
        fill_value = out.tensor(Tensor(compute_type, (), (node.attribute("extrapolation_value", 0.0),)))
        for axis, inside in masks.items():
            mask = inside.as_column(request.rank - 1 - axis, "bool", out)
            data = out.emit("Where", [mask, data, fill_value])
    rename_output(data if element_type == compute_type else out.cast(data, element_type), node, out)


def _shrinks(axis: ResizeAxis) -> bool:
    """Return whether the scale of an axis is known to be below 1."""
    return axis.scale.numbers is not None and axis.scale.numbers[0] < 1


def _types(request: ResizeRequest, out: Rewriter) -> tuple[str, str]:
    """Return the element type of the data and the type to compute in, both `""` if pixels are only copied."""
    mode, coordinates = request.sampling.mode, request.sampling.coordinates
    if mode == "nearest" and not request.crops:
        return "", ""
    if mode != "nearest" and coordinates == "tf_half_pixel_for_nn":
        raise CannotConvert("tf_half_pixel_for_nn is only defined for mode nearest", "result.undefined")
    element_type = out.element_type(request.data)
    if mode == "nearest":
        return element_type, element_type
    if element_type not in COMPUTE_TYPES:
        reason = f"the node interpolates {element_type}, but the rounding of the result is undefined"
        remedy = "cast to float before the node, and round and cast back after it"
        raise CannotConvert(reason, "result.undefined", remedy=remedy)
    return element_type, COMPUTE_TYPES[element_type]


def _require_known_filters(axes: Mapping[int, ResizeAxis], request: ResizeRequest) -> None:
    """Refuse antialiasing of axes of unknown size and scale, for which the width of the filter is unknown."""
    if not request.sampling.antialias:
        return
    if any(each.size.numbers is None and each.scale.numbers is None for each in axes.values()):
        reason = (
            f"antialias is set, so the width of the filter depends on the unknown size of {request.data!r}"
        )
        otherwise = "make scales an initializer that is not a graph input" if request.scales else ""
        raise UnknownShape(reason, request.data, otherwise=otherwise)


def _multiply(data: str, axis: int, rank: int, matrix: WeightMatrix, element_type: str, out: Rewriter) -> str:
    """Resize an axis: emit the matrix product of the pixels and the weights."""
    weights = out.emit("Transpose", [matrix.weights.as_name()], perm=[1, 0])
    if element_type != "float":
        weights = out.cast(weights, element_type)
    found = out.emit("MatMul", [_rows(data, axis, rank, matrix, out), weights])
    return out.emit("Transpose", [found], perm=[*range(axis), rank - 1, *range(axis, rank - 1)])


def _add_products(
    data: str, axis: int, rank: int, matrix: WeightMatrix, element_type: str, out: Rewriter
) -> str:
    """Resize an axis: emit sums of products of the pixels and the weights that are not 0.

    Unlike in a matrix product, infinite pixels with a weight of 0 have no effect.
    """
    weights = matrix.weights.as_name()
    if element_type != "float":
        weights = out.cast(weights, element_type)
    rows = out.emit("Unsqueeze", [_rows(data, axis, rank, matrix, out)], axes=[rank - 1])
    products = out.emit("Mul", [rows, weights])
    used = out.emit("Where", [out.cast(weights, "bool"), products, out.constant(0.0, element_type)])
    found = out.emit("ReduceSum", [used], axes=[rank], keepdims=0)
    return out.emit("Transpose", [found], perm=[*range(axis), rank - 1, *range(axis, rank - 1)])


def _rows(data: str, axis: int, rank: int, matrix: WeightMatrix, out: Rewriter) -> str:
    """Return the pixels that the weights multiply, with the resized axis as the last one."""
    pixels = out.emit("Gather", [data, out.int64(matrix.pixels)], axis=axis)
    others = [each for each in range(rank) if each != axis]
    return out.emit("Transpose", [pixels], perm=[*others, axis])


def _weighted_sum(
    data: str, axis: int, taps: list[ResizeTap], trailing: int, element_type: str, out: Rewriter
) -> str:
    def weighted_pixels(tap: ResizeTap) -> str:
        pixels = out.emit("Gather", [data, tap.pixel.as_int64(out)], axis=axis)
        if tap.weight.numbers == (1.0,):
            return pixels
        return out.emit("Mul", [pixels, tap.weight.as_column(trailing, element_type, out)])

    # Skip pixels whose weights are all known to be 0; keep pixels with computed or empty weights.
    relevant = [tap for tap in taps if not tap.weight.numbers or any(tap.weight.numbers)]
    return fold("Add", map(weighted_pixels, relevant), out)


EMPTY_ROI = Tensor("float", (0,), ())
"""Empty input `roi`, which no coordinate mode except `tf_crop_and_resize` reads."""

COORDINATE_MODE = "coordinate_transformation_mode"

ASYMMETRIC_ROUNDINGS = {"floor": b"floor", "round_prefer_floor": b"round_prefer_ceil"}
"""For each `nearest_mode` of `tf_half_pixel_for_nn`, the `nearest_mode` with which `asymmetric` reads the
same pixels, if all scales are integers.
"""

ADDED_IN_18 = ("antialias", "axes", "keep_aspect_ratio_policy")
"""Attributes that version 18 introduced."""


@adapter("Upsample", 1, 7)
def merge_scale_attributes(node: Node, out: Rewriter) -> None:
    """Merge `height_scale` and `width_scale` into `scales`; rename mode `bilinear` to `linear`."""
    scales = [1.0, 1.0, node.attribute("height_scale"), node.attribute("width_scale")]
    mode = b"linear" if node.attribute("mode", b"nearest") == b"bilinear" else b"nearest"
    out.replace(node, attributes={"scales": scales, "mode": mode})


@adapter("Upsample", 9, 7, error=ERROR)
def move_scales_to_attribute(node: Node, out: Rewriter) -> None:
    """Move constant scales to an attribute; expand the node if the scales are computed."""
    scales = out.constant_value(node.inputs[1])
    if scales is None:
        expand_resize(node, out)
    else:
        out.replace(node, inputs=node.inputs[:1], attributes={**node.attributes, "scales": scales.values})


@adapter("Upsample", 7, 1)
def split_scales_attribute(node: Node, out: Rewriter) -> None:
    """Split the scales into `height_scale` and `width_scale`; refuse other scales."""
    scales = node.attribute("scales")
    if len(scales) != 4 or scales[0] != 1 or scales[1] != 1:
        reason = f"scales are {list(scales)}; Upsample-1 enlarges the last two of four dimensions"
        raise CannotConvert(reason, "value.unsupported")
    mode = b"bilinear" if node.attribute("mode", b"nearest") == b"linear" else b"nearest"
    out.replace(node, attributes={"height_scale": scales[2], "width_scale": scales[3], "mode": mode})


@adapter("Resize", 10, 11)
def add_coordinate_attributes(node: Node, out: Rewriter) -> None:
    """Set the mapping of version 10: `asymmetric`, rounding down to enlarge and up to shrink."""
    data, scales = node.inputs
    attributes = {**node.attributes, COORDINATE_MODE: b"asymmetric"}
    if node.attribute("mode", b"nearest") == b"nearest":
        shrink, enlarge = _split_scales(scales, out)
        # In version 11, all axes share one `nearest_mode`, so shrinking gets a separate node.
        if shrink and enlarge:
            inputs = [data, out.tensor(EMPTY_ROI), shrink]
            data = out.emit("Resize", inputs, **attributes, nearest_mode=b"ceil")
        scales = enlarge or shrink
        attributes["nearest_mode"] = b"floor" if enlarge else b"ceil"
    out.replace(node, inputs=[data, out.tensor(EMPTY_ROI), scales], attributes=attributes)


@adapter("Resize", 11, 13, error=ERROR)
def omit_empty_scales(node: Node, out: Rewriter) -> None:
    """Omit the empty `scales` that version 11 requires next to `sizes`; replace `tf_half_pixel_for_nn`."""
    if node.input(3):
        data, region, _, sizes = node.inputs
        node = node.with_(inputs=[data, region, "", sizes])
    if text_attribute(node, COORDINATE_MODE, "") != "tf_half_pixel_for_nn":
        out.replace(node)
        return
    is_nearest = text_attribute(node, "mode", "nearest") == "nearest"
    rounding = text_attribute(node, "nearest_mode", "round_prefer_floor")
    if is_nearest and rounding in ASYMMETRIC_ROUNDINGS and has_integer_scales(node, out):
        changes = {COORDINATE_MODE: b"asymmetric", "nearest_mode": ASYMMETRIC_ROUNDINGS[rounding]}
        out.replace(node, attributes={**node.attributes, **changes})
        return
    if is_nearest and _has_known_pixels(node, out):
        expand_resize(node, out)
    else:
        # Keep the mode, which exported models of newer opsets contain, and onnxruntime supports.
        out.replace(node)


def _has_known_pixels(node: Node, out: Rewriter) -> bool:
    """Return whether all sizes and scales are known, and runtimes read the pixels of the specification."""
    if out.known_rank(node.inputs[0]) is None:
        return False
    request = read_request(node, out)
    if not has_constant_axes(node, request, out):
        return False
    return not runtime_difference(read_axes(node, request, out), request)


@adapter("Resize", 19, 18, error=ERROR)
def replace_half_pixel_symmetric(node: Node, out: Rewriter) -> None:
    """Replace `half_pixel_symmetric` by `half_pixel` if both sample the same pixels; else expand the node."""
    if text_attribute(node, COORDINATE_MODE, "half_pixel") != "half_pixel_symmetric":
        out.replace(node)
        return
    request = read_request(node, out)
    if has_constant_axes(node, request, out):
        axes, sampling = read_axes(node, request, out), request.sampling
        if has_same_samples(axes, sampling, sampling._replace(coordinates="half_pixel"), out):
            out.replace(node, attributes={**node.attributes, COORDINATE_MODE: b"half_pixel"})
            return
    expand_resize(node, out)


@adapter("Resize", 18, 13, error=ERROR)
def drop_axes_attribute(node: Node, out: Rewriter) -> None:
    """Extend scales, sizes and regions to all dimensions; expand antialiasing and policies if necessary."""
    request = read_request(node, out)
    sampling = request.sampling
    is_direct = request.policy == STRETCH or not request.sizes
    if is_direct and not sampling.antialias:
        inputs = [request.data, *_list_all_dimensions(node, request, out)]
        while not inputs[-1]:
            inputs.pop()
        out.replace(node, inputs=inputs, attributes=node.without(*ADDED_IN_18))
        return
    if has_constant_axes(node, request, out):
        axes = read_axes(node, request, out)
        equivalent = None if runtime_difference(axes, request) else equivalent_scales(axes, request.rank)
        if equivalent and has_same_samples(axes, sampling, sampling._replace(antialias=False), out):
            region, _, _ = _list_all_dimensions(node, request, out)
            inputs = [request.data, region, out.constant(equivalent, "float")]
            unused = ("exclude_outside",) if sampling.mode == "linear" else ()
            out.replace(node, inputs=inputs, attributes=node.without(*ADDED_IN_18, *unused))
            return
    expand_resize(node, out)


@adapter("Resize", 13, 11)
def add_empty_inputs(node: Node, out: Rewriter) -> None:
    """Replace an omitted `roi` and omitted `scales` by empty tensors, because version 11 requires both."""
    empty = out.tensor(EMPTY_ROI)
    region, scales, sizes = (node.input(position) for position in (1, 2, 3))
    inputs = [node.inputs[0], region or empty, scales or empty, *([sizes] if sizes else [])]
    out.replace(node, inputs=inputs)


@adapter("Resize", 11, 10, error=ERROR)
def drop_coordinate_attributes(node: Node, out: Rewriter) -> None:
    """Drop a mapping equal to that of version 10: `asymmetric`, rounding down to enlarge and up to shrink."""
    request = read_request(node, out)
    sampling = request.sampling
    attributes = {"mode": sampling.mode.encode()}
    is_linear = sampling.mode == "linear" and sampling.coordinates == "asymmetric" and bool(request.scales)
    if is_linear or repeats_pixels(request, out):
        out.replace(node, inputs=[request.data, request.scales], attributes=attributes)
        return
    if sampling.mode != "cubic" and has_constant_axes(node, request, out):
        axes = read_axes(node, request, out)
        scales = equivalent_scales(axes, request.rank)
        version_10 = Sampling(sampling.mode, "asymmetric", "by_direction")
        if scales and has_same_samples(axes, sampling, version_10, out):
            name = request.scales or out.constant(scales, "float")
            out.replace(node, inputs=[request.data, name], attributes=attributes)
            return
    expand_resize(node, out)


@adapter("Resize", 10, 9, error=ERROR)
def rename_to_upsample(node: Node, out: Rewriter) -> None:
    """Rename to Upsample if no scale is below one; otherwise expand the node."""
    scales = out.constant_value(node.inputs[1])
    if scales is not None and all(each >= 1 for each in scales.values):
        out.replace(node, op_type="Upsample")
    else:
        expand_resize(node, out)


def _split_scales(scales: str, out: Rewriter) -> tuple[str, str]:
    """Return two inputs: the scales that shrink and the scales that enlarge; an unneeded input is `""`."""
    known = out.constant_value(scales)
    if known is None:
        one = out.constant([1.0], "float")
        return out.emit("Min", [scales, one]), out.emit("Max", [scales, one])
    if all(value >= 1 for value in known.values):
        return "", scales
    if all(value <= 1 for value in known.values):
        return scales, ""
    shrink = out.constant([min(value, 1.0) for value in known.values], "float")
    return shrink, out.constant([max(value, 1.0) for value in known.values], "float")


def _list_all_dimensions(node: Node, request: ResizeRequest, out: Rewriter) -> tuple[str, str, str]:
    """Return the inputs `roi`, `scales` and `sizes`, extended from `axes` to all dimensions."""
    region, scales, sizes = request.roi, request.scales, request.sizes
    if "axes" not in node.attributes:
        return region, scales, sizes
    out = out.for_opset(OPSET)
    count = len(request.axes)
    position_of = {axis: position for position, axis in enumerate(request.axes)}
    dims = range(request.rank)
    if scales:
        one = out.constant([1.0], "float")
        scales = _select(scales, one, [position_of.get(axis, count) for axis in dims], out)
    if sizes:
        shape = out.known_shape(request.data)
        all_sizes = out.emit("Shape", [request.data]) if shape is None else out.int64(shape)
        sizes = _select(sizes, all_sizes, [position_of.get(axis, count + axis) for axis in dims], out)
    if region and request.crops:
        full_range = out.constant([0.0, 1.0], out.element_type(region))
        starts = [position_of.get(axis, 2 * count) for axis in dims]
        # All other axes have the region [0, 1], whose bounds are appended to `region`.
        ends = [count + position_of.get(axis, count + 1) for axis in dims]
        region = _select(region, full_range, [*starts, *ends], out)
    return region, scales, sizes


def _select(first: str, second: str, indices: Sequence[int], out: Rewriter) -> str:
    """Return the elements at `indices` of the concatenation of two 1-D tensors."""
    known, other = out.constant_value(first), out.constant_value(second)
    if known is not None and other is not None:
        values = (*known.values, *other.values)
        return out.constant([values[index] for index in indices], known.element_type)
    concatenated = out.emit("Concat", [first, second], axis=0)
    return out.emit("Gather", [concatenated, out.int64(indices)], axis=0)
