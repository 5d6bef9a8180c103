"""Resize and Upsample as Gather and arithmetic, which every opset has."""

from __future__ import annotations

from collections.abc import Mapping

from opshift.adapters.finishing import finish
from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.resampling import ONE, Axis, Filter, Samples, samples
from opshift.adapters.resized_axes import axes_of, doubt, filter_of, is_untouched, request_of
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.vectors import OPSET, Vector, Vectors, spread
from opshift.registry.element_types import BY_NAME

COMPUTED_IN = {"float": "float", "double": "double", "float16": "float", "bfloat16": "float"}


def rebuild(node: Node, out: Rewriter) -> None:
    """Emit what gives the same pixels as a Resize or Upsample of any version."""
    how, vectors = filter_of(node, out), Vectors(out)
    element_type, wide = _types(node, how, out)
    request = request_of(node, out)
    axes = axes_of(node, request, out, vectors)
    if found := doubt(axes, how, request):
        out.concede("approximate", found)
    axes = {axis: each for axis, each in axes.items() if not is_untouched(each, how)}
    data = _cast(request.data, element_type, wide, out)
    sampled = {axis: samples(each, how, vectors) for axis, each in axes.items()}
    for axis, each in sampled.items():
        data = _weighted(data, axis, each, request.rank - 1 - axis, wide, vectors, out)
    data = _filled(data, node, sampled, request.rank, wide, out, vectors)
    finish(_cast(data, wide, element_type, out), node, out)


def same_samples(
    axes: Mapping[int, Axis], how: Filter, others: Mapping[int, Axis], other: Filter, vectors: Vectors
) -> bool:
    """Whether two ways of sampling, of which all is known, give the same pixels."""
    for axis, each in axes.items():
        if is_untouched(each, how) and is_untouched(others[axis], other):
            continue
        if not _equal(samples(each, how, vectors), samples(others[axis], other, vectors)):
            return False
    return True


def _types(node: Node, how: Filter, out: Rewriter) -> tuple[str, str]:
    """The element type of the data, and the one to compute in; pixels that are copied keep their own."""
    if how.mode == "nearest" and how.coordinates != "tf_crop_and_resize":
        return "", ""
    if how.mode != "nearest" and how.coordinates == "tf_half_pixel_for_nn":
        raise CannotConvert("tf_half_pixel_for_nn is defined for the nearest pixel only")
    found = out.element_type(node.inputs[0])
    if how.mode == "nearest":
        return found, found
    if found not in COMPUTED_IN:
        raise CannotConvert(
            f"it interpolates {found}, and how the result is rounded to that is not defined",
            remedy="cast to float before it and back, with the rounding that is meant",
        )
    return found, COMPUTED_IN[found]


def _cast(data: str, source: str, target: str, out: Rewriter) -> str:
    if source == target:
        return data
    return out.emit("Cast", [data], opset=OPSET, to=BY_NAME[target].number)


def _weighted(
    data: str, axis: int, found: Samples, trailing: int, element_type: str, vectors: Vectors, out: Rewriter
) -> str:
    total = ""
    for pixel, weight in found.taps:
        if isinstance(weight, tuple) and weight and not any(weight):
            continue
        part = out.emit("Gather", [data, vectors.whole(pixel)], opset=OPSET, axis=axis)
        if weight != ONE:
            share = vectors.along(weight, trailing, element_type)
            part = out.emit("Mul", [part, share], opset=OPSET)
        total = out.emit("Add", [total, part], opset=OPSET) if total else part
    return total


def _filled(
    data: str,
    node: Node,
    found: Mapping[int, Samples],
    rank: int,
    element_type: str,
    out: Rewriter,
    vectors: Vectors,
) -> str:
    """`extrapolation_value` where the place of a pixel lies beside the input."""
    beside = {axis: each.inside for axis, each in found.items() if not _is_all(each.inside)}
    if not beside:
        return data
    value = node.attribute("extrapolation_value", 0.0)
    filling = out.tensor(Tensor(element_type, (), (value,)))
    for axis, inside in beside.items():
        mask = vectors.along(inside, rank - 1 - axis, "bool")
        data = out.emit("Where", [mask, data, filling], opset=OPSET)
    return data


def _is_all(inside: Vector) -> bool:
    return isinstance(inside, tuple) and all(inside)


def _equal(one: Samples, other: Samples) -> bool:
    if len(one.taps) != len(other.taps) or not (_is_all(one.inside) and _is_all(other.inside)):
        return False
    return all(
        first.pixel == second.pixel and _close(first.weight, second.weight)
        for first, second in zip(one.taps, other.taps, strict=True)
    )


def _close(one: Vector, other: Vector) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return False
    length = max(len(one), len(other))
    pairs = zip(spread(one, length), spread(other, length), strict=True)
    return all(abs(first - second) <= 1e-6 for first, second in pairs)
