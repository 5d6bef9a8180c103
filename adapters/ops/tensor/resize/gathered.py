"""Resize and Upsample as Gather and arithmetic, which every opset supports."""

from __future__ import annotations

from collections.abc import Mapping

from opshift.adapters.core.rewriter import Rewriter, rename_output
from opshift.adapters.ops.tensor.resize.request import (
    is_unchanged,
    read_axes,
    read_request,
    read_sampling,
    runtime_difference,
)
from opshift.adapters.ops.tensor.resize.samples import ONE, ResizeAxis, Samples, Sampling, sample_axis
from opshift.adapters.ops.tensor.resize.vectors import OPSET, Vector, Vectors, repeat_to_length
from opshift.model.errors import CannotConvert
from opshift.model.node import Node, Tensor

COMPUTE_TYPES = {"float": "float", "double": "double", "float16": "float", "bfloat16": "float"}
"""Type to interpolate in by type of the data: 16-bit floats are interpolated in float32."""


def expand_resize(node: Node, out: Rewriter) -> None:
    """Emit nodes that compute the same pixels as a Resize or Upsample of any version."""
    sampling, vectors = read_sampling(node, out), Vectors(out)
    element_type, compute_type = _types(node, sampling, out)
    request = read_request(node, out)
    axes = read_axes(node, request, out, vectors)
    if difference := runtime_difference(axes, sampling, request):
        out.allow("approximate", difference)
    axes = {axis: each for axis, each in axes.items() if not is_unchanged(each, sampling)}
    data = _cast(request.data, element_type, compute_type, out)
    sampled = {axis: sample_axis(each, sampling, vectors) for axis, each in axes.items()}
    for axis, each in sampled.items():
        data = _weighted_sum(data, axis, each, request.rank - 1 - axis, compute_type, vectors, out)
    data = _fill_outside(data, node, sampled, request.rank, compute_type, out, vectors)
    rename_output(_cast(data, compute_type, element_type, out), node, out)


def _types(node: Node, sampling: Sampling, out: Rewriter) -> tuple[str, str]:
    """Return the element type of the data and the one to compute in, both empty if pixels are only copied."""
    if sampling.mode == "nearest" and sampling.coordinates != "tf_crop_and_resize":
        return "", ""
    if sampling.mode != "nearest" and sampling.coordinates == "tf_half_pixel_for_nn":
        raise CannotConvert("tf_half_pixel_for_nn is only defined for mode nearest")
    element_type = out.element_type(node.inputs[0])
    if sampling.mode == "nearest":
        return element_type, element_type
    if element_type not in COMPUTE_TYPES:
        raise CannotConvert(
            f"the node interpolates {element_type}, but the rounding of the result is undefined",
            remedy="cast to float before the node, and round and cast back after it",
        )
    return element_type, COMPUTE_TYPES[element_type]


def _cast(data: str, source: str, target: str, out: Rewriter) -> str:
    if source == target:
        return data
    return out.cast(data, target, opset=OPSET)


def _weighted_sum(
    data: str, axis: int, found: Samples, trailing: int, element_type: str, vectors: Vectors, out: Rewriter
) -> str:
    total = ""
    for pixel, weight in found.taps:
        # A tap with zero weight everywhere adds nothing.
        if isinstance(weight, tuple) and weight and not any(weight):
            continue
        part = out.emit("Gather", [data, vectors.as_int64(pixel)], opset=OPSET, axis=axis)
        if weight != ONE:
            factor = vectors.as_column(weight, trailing, element_type)
            part = out.emit("Mul", [part, factor], opset=OPSET)
        total = out.emit("Add", [total, part], opset=OPSET) if total else part
    return total


def _fill_outside(
    data: str,
    node: Node,
    found: Mapping[int, Samples],
    rank: int,
    element_type: str,
    out: Rewriter,
    vectors: Vectors,
) -> str:
    """Replace pixels with a coordinate outside the input by `extrapolation_value`."""
    masks = {axis: each.inside for axis, each in found.items() if not _is_all_inside(each.inside)}
    if not masks:
        return data
    value = node.attribute("extrapolation_value", 0.0)
    fill_value = out.tensor(Tensor(element_type, (), (value,)))
    for axis, inside in masks.items():
        mask = vectors.as_column(inside, rank - 1 - axis, "bool")
        data = out.emit("Where", [mask, data, fill_value], opset=OPSET)
    return data


def _is_all_inside(inside: Vector) -> bool:
    return isinstance(inside, tuple) and all(inside)


def has_same_samples(
    axes: Mapping[int, ResizeAxis],
    sampling: Sampling,
    other_axes: Mapping[int, ResizeAxis],
    other_sampling: Sampling,
    vectors: Vectors,
) -> bool:
    """Return whether two ways of sampling, with all sizes known, yield the same pixels."""
    for axis, resized in axes.items():
        if is_unchanged(resized, sampling) and is_unchanged(other_axes[axis], other_sampling):
            continue
        if not _is_same(
            sample_axis(resized, sampling, vectors), sample_axis(other_axes[axis], other_sampling, vectors)
        ):
            return False
    return True


def _is_same(first_samples: Samples, second_samples: Samples) -> bool:
    if len(first_samples.taps) != len(second_samples.taps) or not (
        _is_all_inside(first_samples.inside) and _is_all_inside(second_samples.inside)
    ):
        return False
    return all(
        first.pixel == second.pixel and _is_close(first.weight, second.weight)
        for first, second in zip(first_samples.taps, second_samples.taps, strict=True)
    )


def _is_close(first_weight: Vector, second_weight: Vector) -> bool:
    if isinstance(first_weight, str) or isinstance(second_weight, str):
        return False
    length = max(len(first_weight), len(second_weight))
    pairs = zip(repeat_to_length(first_weight, length), repeat_to_length(second_weight, length), strict=True)
    return all(abs(first - second) <= 1e-6 for first, second in pairs)
