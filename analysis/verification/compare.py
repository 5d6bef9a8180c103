"""Numeric comparison of the outputs of two models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from opshift.analysis.verification.numpy_types import Array, array_element_type
from opshift.analysis.verification.result import OutputCompared, Tolerance

EXACT = Tolerance(0.0, 0.0)

TOLERANCES: Mapping[str, Tolerance] = {
    "double": Tolerance(1e-9, 1e-10), "complex128": Tolerance(1e-9, 1e-10),
    "float": Tolerance(1e-4, 1e-5), "complex64": Tolerance(1e-4, 1e-5),
    "float16": Tolerance(1e-2, 5e-3), "bfloat16": Tolerance(5e-2, 2e-2),
}  # fmt: skip
"""Tolerances of types with rounding errors; elements of all other types have to be equal."""


class Leaf(NamedTuple):
    """Tensor of an output: the output itself, or an element of a sequence or map, at `place`."""

    place: str
    value: Array | None


class TensorDifference(NamedTuple):
    """Difference between two tensors.

    Attributes:
        elements: the number of elements.
        finite: the number of finite elements in the original's tensor.
        absolute, relative: the largest differences.
        differing: the number of elements beyond the tolerance.
        reason: description of the difference; empty if there is none beyond the tolerance.
    """

    elements: int
    finite: int
    absolute: float
    relative: float
    differing: int
    reason: str


NO_DIFFERENCE = TensorDifference(0, 0, 0.0, 0.0, 0, "")


def compare_output(
    name: str, original: Sequence[object], converted: Sequence[object], tolerance: float | None
) -> OutputCompared:
    """Compare the values of one output for all samples.

    Args:
        name: name of the output.
        original: values of the original model, one for each sample.
        converted: values of the converted model.
        tolerance: relative and absolute tolerance, instead of the defaults, for types that have one.
    """
    first = next(_leaves(original[0]), Leaf("", None)).value
    element_type = "" if first is None else array_element_type(first)
    allowed = TOLERANCES.get(element_type, EXACT)
    if tolerance is not None and element_type in TOLERANCES:
        allowed = Tolerance(tolerance, tolerance)
    pairs = zip(original, converted, strict=True)
    differences = [each for one, other in pairs for each in _compare_values(one, other, allowed)]
    shape = None if first is None or isinstance(original[0], list | Mapping) else first.shape
    return OutputCompared(
        name,
        element_type,
        shape,
        sum(each.elements for each in differences),
        sum(each.finite for each in differences),
        max((each.absolute for each in differences), default=0.0),
        max((each.relative for each in differences), default=0.0),
        allowed,
        sum(each.differing for each in differences),
        next((each.reason for each in differences if each.reason), ""),
    )


def _compare_values(original: object, converted: object, tolerance: Tolerance) -> Iterator[TensorDifference]:
    original_leaves, converted_leaves = list(_leaves(original)), list(_leaves(converted))
    if [each.place for each in original_leaves] != [each.place for each in converted_leaves]:
        yield NO_DIFFERENCE._replace(
            reason=f"the structure differs ({len(original_leaves)} and {len(converted_leaves)} tensors)"
        )
        return
    for one, other in zip(original_leaves, converted_leaves, strict=True):
        yield _compare_tensors(one.place, one.value, other.value, tolerance)


def _leaves(value: object, place: str = "") -> Iterator[Leaf]:
    if isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _leaves(each, f"{place}[{index}]")
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _leaves(value[key], f"{place}[{key!r}]")
    else:
        # onnxruntime returns float32 values of maps as Python floats
        kind = np.float32 if type(value) is float else None
        yield Leaf(place, None if value is None else np.asarray(value, kind))


def _compare_tensors(
    place: str, original: Array | None, converted: Array | None, tolerance: Tolerance
) -> TensorDifference:
    if original is None or converted is None:
        both_absent = original is converted
        return NO_DIFFERENCE._replace(
            reason="" if both_absent else f"{place} is absent in one of the models".strip()
        )
    for aspect, one, other in (
        ("type", array_element_type(original), array_element_type(converted)),
        ("shape", list(original.shape), list(converted.shape)),
    ):
        if one != other:
            return NO_DIFFERENCE._replace(
                reason=f"the {aspect} of {place or 'the output'} changed from {one} to {other}"
            )
    return _compare_elements(place, original, converted, tolerance)


def _compare_elements(
    place: str, original: Array, converted: Array, tolerance: Tolerance
) -> TensorDifference:
    with np.errstate(all="ignore"):  # infinities and NaN are expected here
        distances, differs = _distances(original, converted, tolerance)
        magnitude = np.abs(_widen(original)) if original.dtype.kind not in "OSU" else np.zeros(original.shape)
        ratios = distances[magnitude > 0] / magnitude[magnitude > 0]
    ratios = np.nan_to_num(ratios, nan=np.inf, posinf=np.inf)
    return TensorDifference(
        original.size,
        int(np.isfinite(magnitude).sum()),
        float(distances.max(initial=0.0)),
        float(ratios.max(initial=0.0)),
        int(differs.sum()),
        _describe_worst(place, original, converted, distances, differs) if differs.any() else "",
    )


def _distances(original: Array, converted: Array, tolerance: Tolerance) -> tuple[Array, Array]:
    """Return the distance of each pair of elements, and whether it exceeds the tolerance. NaN equals NaN."""
    if original.dtype.kind in "OSU":
        differs = np.asarray(original.astype(str) != converted.astype(str))
        return np.zeros(original.shape), differs
    one, other = _widen(original), _widen(converted)
    same = np.asarray((original == converted) | (np.isnan(one) & np.isnan(other)))
    distances = np.where(
        same, 0.0, np.nan_to_num(_magnitude_of_difference(original, converted), nan=np.inf, posinf=np.inf)
    )
    magnitude = np.abs(one)
    finite = np.isfinite(magnitude)
    mean = max(1.0, float(magnitude[finite].mean())) if finite.any() else 1.0
    allowed = np.where(finite, tolerance.absolute * mean + tolerance.relative * magnitude, 0.0)
    return distances, ~same & ~(distances <= allowed) if tolerance != EXACT else ~same


def _magnitude_of_difference(original: Array, converted: Array) -> Array:
    """Return the absolute differences; integers are subtracted without overflow or loss."""
    if original.dtype.kind not in "iu":
        return np.asarray(np.abs(_widen(original) - _widen(converted)))
    larger, smaller = np.maximum(original, converted), np.minimum(original, converted)
    # differences of 64-bit integers fit into uint64, but not into int64 or float64
    return np.asarray((larger.astype(np.uint64) - smaller.astype(np.uint64)).astype(np.float64))


def _widen(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _describe_worst(place: str, original: Array, converted: Array, distances: Array, differs: Array) -> str:
    # -1 excludes elements within the tolerance, also for strings, which have distance 0
    where = np.unravel_index(int(np.argmax(np.where(differs, distances, -1.0))), original.shape)
    index = f"[{', '.join(map(str, where))}]" if where else ""
    count_text = f"{int(differs.sum())} of {original.size} elements"
    return f"{count_text}; {original[where]} at {place + index or '[]'} became {converted[where]}"
