"""Numeric comparison of the outputs of two models."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from opshift.analysis.verification.numpy_types import Array, array_element_type
from opshift.analysis.verification.result import ElementCompared, OutputCompared, Tolerance
from opshift.model.plain_data import Json

EXACT = Tolerance(0.0, 0.0)

LARGEST = float(np.finfo(np.float64).max)

TOLERANCES: Mapping[str, Tolerance] = {
    "double": Tolerance(1e-9, 1e-10), "complex128": Tolerance(1e-9, 1e-10),
    "float": Tolerance(1e-4, 1e-5), "complex64": Tolerance(1e-4, 1e-5),
    "float16": Tolerance(1e-2, 5e-3), "bfloat16": Tolerance(5e-2, 2e-2),
}  # fmt: skip
"""Default tolerances by element type; elements of other types have to be equal."""


class TensorDifference(NamedTuple):
    """Difference between two tensors; see `OutputCompared` for the fields."""

    elements: int = 0
    finite: int = 0
    absolute: float = 0.0
    relative: float = 0.0
    differing: int = 0
    worst: ElementCompared | None = None
    reason: str = ""
    """Difference of types, shapes or structures in words."""


def tolerance_for(types: Iterable[str]) -> float | None:
    """Return the largest relative tolerance of the given element types; `None` if all types are exact."""
    return max((TOLERANCES[each].relative for each in types if each in TOLERANCES), default=None)


def compare_output(
    name: str, original: Sequence[object], converted: Sequence[object], tolerance: float | None
) -> OutputCompared:
    """Compare one output of both models; `original` and `converted` contain its value for each sample.

    Unless it is `None`, `tolerance` replaces the relative and the absolute tolerance in `TOLERANCES`.
    """
    # search all samples: the first one may contain an empty sequence or an absent value
    leaves = (array for value in original for _, array in _tensor_leaves(value))
    first = next((array for array in leaves if array is not None), None)
    element_type = "" if first is None else array_element_type(first)
    allowed = _tolerance_of(element_type, tolerance)
    pairs = enumerate(zip(original, converted, strict=True))
    differences = [each for sample, pair in pairs for each in _compare_values(sample, *pair, allowed)]
    shape = None if first is None or isinstance(original[0], list | Mapping) else first.shape
    count, differing = sum(each.elements for each in differences), sum(each.differing for each in differences)
    compared = sorted(differences, key=lambda each: (each.differing > 0, each.absolute))
    worst = compared[-1].worst if compared else None
    reason = next((each.reason for each in differences if each.reason), "")
    if worst and differing and not reason:
        place = worst.position or "[]"
        reason = f"{differing} of {count} elements; {worst.original} at {place} became {worst.converted}"
    return OutputCompared(
        name,
        element_type,
        shape,
        count,
        sum(each.finite for each in differences),
        max((each.absolute for each in differences), default=0.0),
        max((each.relative for each in differences), default=0.0),
        allowed,
        differing,
        reason,
        worst,
    )


def agreeing_elements(one: Array, other: Array, tolerance: float | None) -> Array:
    """Return a boolean array that is `True` where two numeric arrays of equal type and shape agree."""
    with np.errstate(all="ignore"):  # infinities and NaN are expected in the arrays
        first, second = _widen_floats(one), _widen_floats(other)
        same = (first == second) | (np.isnan(first) & np.isnan(second))
        allowed = _allowed_differences(np.abs(first), _tolerance_of(array_element_type(one), tolerance))
        return np.asarray(same | (np.abs(first - second) <= allowed))


def _tolerance_of(element_type: str, tolerance: float | None) -> Tolerance:
    if element_type not in TOLERANCES:
        return EXACT
    return TOLERANCES[element_type] if tolerance is None else Tolerance(tolerance, tolerance)


def _compare_values(
    sample: int, original: object, converted: object, tolerance: Tolerance
) -> Iterator[TensorDifference]:
    ones, others = dict(_tensor_leaves(original)), dict(_tensor_leaves(converted))
    if list(ones) != list(others):
        reason = f"the structure differs ({len(ones)} and {len(others)} tensors)"
        yield TensorDifference(reason=reason)
        return
    for place, one in ones.items():
        yield _compare_tensors(sample, place, one, others[place], tolerance)


def _tensor_leaves(value: object, place: str = "") -> Iterator[tuple[str, Array | None]]:
    """Yield pairs: a place in sequences and maps, such as `[0]`, and its tensor; `None` if it is absent."""
    if isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _tensor_leaves(each, f"{place}[{index}]")
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _tensor_leaves(value[key], f"{place}[{key!r}]")
    else:
        # onnxruntime returns the float32 values of a map as Python floats
        kind = np.float32 if type(value) is float else None
        yield place, None if value is None else np.asarray(value, kind)


def _compare_tensors(
    sample: int, place: str, original: Array | None, converted: Array | None, tolerance: Tolerance
) -> TensorDifference:
    if original is None or converted is None:
        reason = "" if original is converted else f"{place or 'the output'} is absent in one of the models"
        return TensorDifference(reason=reason)
    for aspect, one, other in (
        ("type", array_element_type(original), array_element_type(converted)),
        ("shape", list(original.shape), list(converted.shape)),
    ):
        if one != other:
            reason = f"the {aspect} of {place or 'the output'} changed from {one} to {other}"
            return TensorDifference(reason=reason)
    with np.errstate(all="ignore"):  # infinities and NaN are expected in the arrays
        return _compare_elements(sample, place, original, converted, tolerance)


def _compare_elements(
    sample: int, place: str, original: Array, converted: Array, tolerance: Tolerance
) -> TensorDifference:
    kind = original.dtype.kind
    if kind in "OSU":
        same = np.asarray(original.astype(str) == converted.astype(str))
        magnitude = differences = np.zeros(original.shape)
    else:
        one, other = _widen_floats(original), _widen_floats(converted)
        same = np.asarray((original == converted) | (np.isnan(one) & np.isnan(other)))
        magnitude = np.abs(one)
        differences = _integer_differences(original, converted) if kind in "iu" else np.abs(one - other)
    finite = int(np.isfinite(magnitude).sum())
    if same.all():
        return TensorDifference(original.size, finite)
    distances = np.nan_to_num(np.where(same, 0.0, differences), nan=np.inf, posinf=np.inf)
    allowed = _allowed_differences(magnitude, tolerance)
    differs = ~same & ~(distances <= allowed) if tolerance != EXACT else ~same
    # Near 0, the absolute limit decides: do not report the relative difference, which is large there.
    is_relative = differs | (2 * tolerance.relative * magnitude >= allowed)
    ratios = np.zeros_like(distances)
    np.divide(distances, magnitude, where=is_relative & (magnitude > 0), out=ratios)
    # -1 excludes elements within the tolerance; 0 is the difference of unequal strings.
    candidates = np.where(differs, distances, -1.0) if differs.any() else distances
    where = np.unravel_index(int(np.argmax(candidates)), original.shape)
    index = f"[{', '.join(map(str, where))}]" if where else ""
    values = _json_element(original[where]), _json_element(converted[where])
    limits = float(distances[where]), float(allowed[where])
    return TensorDifference(
        original.size,
        finite,
        float(distances.max()),
        float(np.nan_to_num(ratios, nan=np.inf, posinf=np.inf).max()),
        int(differs.sum()),
        ElementCompared(sample, place + index, *values, *limits),
    )


def _allowed_differences(magnitude: Array, tolerance: Tolerance) -> Array:
    """Return the largest allowed difference of each element; `magnitude` has the absolute values.

    The differences are finite: an infinite difference is never allowed.
    """
    finite = np.isfinite(magnitude)
    # The sum of large doubles may overflow: scale it by a power of 2, which is exact.
    mean = float((magnitude[finite] * 2.0**-64).mean()) * 2.0**64 if finite.any() else 1.0
    mean = min(max(1.0, mean), LARGEST)
    allowed = np.minimum(tolerance.absolute * mean + tolerance.relative * magnitude, LARGEST)
    return np.where(finite, allowed, 0.0)


def _json_element(element: Any) -> Json:
    """Return an element as JSON data; a float has only the digits that its type needs, such as 0.1."""
    if isinstance(element, np.bool_ | np.integer):
        return cast("Json", element.item())
    return str(element) if isinstance(element, str | np.complexfloating) else float(str(element))


def _integer_differences(original: Array, converted: Array) -> Array:
    """Return the absolute differences of integers as float64, computed without overflow."""
    larger, smaller = np.maximum(original, converted), np.minimum(original, converted)
    # the difference of two 64-bit integers fits into uint64, but may overflow int64
    return np.asarray((larger.astype(np.uint64) - smaller.astype(np.uint64)).astype(np.float64))


def _widen_floats(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
