"""Resize and Upsample as Gather and arithmetic, which every opset supports."""

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import fold
from opshift.adapters.emit.pixel_table import COMPUTE_TYPES
from opshift.adapters.ops.tensor.resize.request import (
    ResizeRequest,
    read_axes,
    read_request,
    runtime_difference,
)
from opshift.adapters.ops.tensor.resize.samples import ResizeTap, WeightMatrix, is_unchanged, sample_axis
from opshift.adapters.ops.tensor.resize.vectors import OPSET


def expand_resize(node: Node, out: Rewriter) -> None:
    """Emit nodes that compute the same pixels as a Resize or Upsample of any version."""
    out = out.for_opset(OPSET)
    request = read_request(node, out)
    element_type, compute_type = _types(request, out)
    axes = read_axes(node, request, out)
    if difference := runtime_difference(axes, request):
        out.allow("approximate", difference)
    data = request.data if element_type == compute_type else out.cast(request.data, compute_type)
    changed = {axis: each for axis, each in axes.items() if not is_unchanged(each, request.sampling)}
    sampled = {axis: sample_axis(each, request.sampling, out) for axis, each in changed.items()}
    for axis, samples in sampled.items():
        if samples.matrix is not None:
            data = _multiply(data, axis, request.rank, samples.matrix, compute_type, out)
            continue
        data = _weighted_sum(data, axis, samples.taps, request.rank - 1 - axis, compute_type, out)
    masks = {axis: each.inside for axis, each in sampled.items() if not each.is_all_inside()}
    if masks:
        fill_value = out.tensor(Tensor(compute_type, (), (node.attribute("extrapolation_value", 0.0),)))
        for axis, inside in masks.items():
            mask = inside.as_column(request.rank - 1 - axis, "bool", out)
            data = out.emit("Where", [mask, data, fill_value])
    rename_output(data if element_type == compute_type else out.cast(data, element_type), node, out)


def _types(request: ResizeRequest, out: Rewriter) -> tuple[str, str]:
    """Return the element type of the data and the one to compute in, both empty if pixels are only copied."""
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


def _multiply(data: str, axis: int, rank: int, matrix: WeightMatrix, element_type: str, out: Rewriter) -> str:
    """Emit the product of the pixels along an axis and their weights."""
    pixels = out.emit("Gather", [data, out.int64(matrix.pixels)], axis=axis)
    weights = out.emit("Transpose", [matrix.weights.as_name()], perm=[1, 0])
    if element_type != "float":
        weights = out.cast(weights, element_type)
    others = [each for each in range(rank) if each != axis]
    rows = out.emit("Transpose", [pixels], perm=[*others, axis])
    product = out.emit("MatMul", [rows, weights])
    return out.emit("Transpose", [product], perm=[*range(axis), rank - 1, *range(axis, rank - 1)])


def _weighted_sum(
    data: str, axis: int, taps: list[ResizeTap], trailing: int, element_type: str, out: Rewriter
) -> str:
    def weighted_pixels(tap: ResizeTap) -> str:
        pixels = out.emit("Gather", [data, tap.pixel.as_int64(out)], axis=axis)
        if tap.weight.numbers == (1.0,):
            return pixels
        return out.emit("Mul", [pixels, tap.weight.as_column(trailing, element_type, out)])

    # A tap with zero weight everywhere adds nothing; computed and empty weights have no known maximum.
    relevant = [tap for tap in taps if not tap.weight.numbers or any(tap.weight.numbers)]
    return fold("Add", map(weighted_pixels, relevant), out)
