"""Numeric comparison of the outputs of two models."""

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


class TensorDifference(NamedTuple):
    """Difference between two tensors; see `OutputCompared` for the fields."""

    elements: int = 0
    finite: int = 0
    absolute: float = 0.0
    relative: float = 0.0
    differing: int = 0
    reason: str = ""


def compare_output(
    name: str, original: Sequence[object], converted: Sequence[object], tolerance: float | None
) -> OutputCompared:
    """Compare the values of one output, which both models have for each sample.

    `tolerance` is relative and absolute, and replaces the defaults for types that have one.
    """
    first = next((array for _, array in _leaves(original[0])), None)
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
    ones, others = dict(_leaves(original)), dict(_leaves(converted))
    if list(ones) != list(others):
        reason = f"the structure differs ({len(ones)} and {len(others)} tensors)"
        yield TensorDifference(reason=reason)
        return
    for place, one in ones.items():
        yield _compare_tensors(place, one, others[place], tolerance)


def _leaves(value: object, place: str = "") -> Iterator[tuple[str, Array | None]]:
    """Yield the tensors of an output, with their places in sequences and maps."""
    if isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _leaves(each, f"{place}[{index}]")
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _leaves(value[key], f"{place}[{key!r}]")
    else:
        # onnxruntime returns float32 values of maps as Python floats
        kind = np.float32 if type(value) is float else None
        yield place, None if value is None else np.asarray(value, kind)


def _compare_tensors(
    place: str, original: Array | None, converted: Array | None, tolerance: Tolerance
) -> TensorDifference:
    if original is None or converted is None:
        reason = "" if original is converted else f"{place} is absent in one of the models".strip()
        return TensorDifference(reason=reason)
    for aspect, one, other in (
        ("type", array_element_type(original), array_element_type(converted)),
        ("shape", list(original.shape), list(converted.shape)),
    ):
        if one != other:
            reason = f"the {aspect} of {place or 'the output'} changed from {one} to {other}"
            return TensorDifference(reason=reason)
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
        return np.zeros(original.shape), np.asarray(original.astype(str) != converted.astype(str))
    one, other = _widen(original), _widen(converted)
    same = np.asarray((original == converted) | (np.isnan(one) & np.isnan(other)))
    magnitudes = np.nan_to_num(_magnitude_of_difference(original, converted), nan=np.inf, posinf=np.inf)
    distances = np.where(same, 0.0, magnitudes)
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
