"""How far apart what two models gave is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from opshift.converter.verification.arrays import Array, element_type_of
from opshift.converter.verification.result import OutputCompared, Tolerance

EXACT = Tolerance(0.0, 0.0)
TOLERANCES: Mapping[str, Tolerance] = {
    "double": Tolerance(1e-9, 1e-10), "complex128": Tolerance(1e-9, 1e-10),
    "float": Tolerance(1e-4, 1e-5), "complex64": Tolerance(1e-4, 1e-5),
    "float16": Tolerance(1e-2, 5e-3), "bfloat16": Tolerance(5e-2, 2e-2),
}  # fmt: skip
"""Types that are computed with; of all others elements have to be equal."""


class Leaf(NamedTuple):
    """A tensor of an output: the output itself, or one in its sequence or map, which `place` then tells."""

    place: str
    value: Array | None


class Apart(NamedTuple):
    """How far apart two tensors are."""

    elements: int
    finite: int
    absolute: float
    relative: float
    differing: int
    reason: str


NOTHING = Apart(0, 0, 0.0, 0.0, 0, "")


def compare(
    name: str, original: Sequence[Any], converted: Sequence[Any], tolerance: float | None
) -> OutputCompared:
    """One output over all samples.

    Args:
        name: of the output.
        original: what one model gave, for each sample.
        converted: what the other gave.
        tolerance: relative and absolute, in place of the usual ones, for types that have any.
    """
    first = next(_leaves(original[0]), Leaf("", None)).value
    element_type = "" if first is None else element_type_of(first)
    allowed = TOLERANCES.get(element_type, EXACT)
    if tolerance is not None and element_type in TOLERANCES:
        allowed = Tolerance(tolerance, tolerance)
    pairs = zip(original, converted, strict=True)
    found = [each for one, other in pairs for each in _structures(one, other, allowed)]
    shape = None if first is None or isinstance(original[0], list | Mapping) else first.shape
    return OutputCompared(
        name,
        element_type,
        shape,
        sum(each.elements for each in found),
        sum(each.finite for each in found),
        max((each.absolute for each in found), default=0.0),
        max((each.relative for each in found), default=0.0),
        allowed,
        sum(each.differing for each in found),
        next((each.reason for each in found if each.reason), ""),
    )


def _structures(original: Any, converted: Any, tolerance: Tolerance) -> Iterator[Apart]:
    ours, theirs = list(_leaves(original)), list(_leaves(converted))
    if [each.place for each in ours] != [each.place for each in theirs]:
        yield NOTHING._replace(reason=f"{len(ours)} parts became {len(theirs)}, or others")
        return
    for one, other in zip(ours, theirs, strict=True):
        yield _tensors(one.place, one.value, other.value, tolerance)


def _leaves(value: Any, place: str = "") -> Iterator[Leaf]:
    if isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _leaves(each, f"{place}[{index}]")
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _leaves(value[key], f"{place}[{key!r}]")
    else:
        # A map holds its float32 values as Python's.
        kind = np.float32 if type(value) is float else None
        yield Leaf(place, None if value is None else np.asarray(value, kind))


def _tensors(place: str, original: Array | None, converted: Array | None, tolerance: Tolerance) -> Apart:
    if original is None or converted is None:
        same = original is converted
        return NOTHING._replace(reason="" if same else f"{place} is absent in one of the models".strip())
    for what, one, other in (
        ("type", element_type_of(original), element_type_of(converted)),
        ("shape", list(original.shape), list(converted.shape)),
    ):
        if one != other:
            return NOTHING._replace(reason=f"{what} {one} of {place or 'it'} became {other}")
    return _elements(place, original, converted, tolerance)


def _elements(place: str, original: Array, converted: Array, tolerance: Tolerance) -> Apart:
    with np.errstate(all="ignore"):
        far, differs = _distances(original, converted, tolerance)
        magnitude = np.abs(_wide(original)) if original.dtype.kind not in "OSU" else np.zeros(original.shape)
        shares = far[magnitude > 0] / magnitude[magnitude > 0]
    shares = np.nan_to_num(shares, nan=np.inf, posinf=np.inf)
    return Apart(
        original.size,
        int(np.isfinite(magnitude).sum()),
        float(far.max(initial=0.0)),
        float(shares.max(initial=0.0)),
        int(differs.sum()),
        _worst(place, original, converted, far, differs) if differs.any() else "",
    )


def _distances(original: Array, converted: Array, tolerance: Tolerance) -> tuple[Array, Array]:
    """The distance of each two elements, and whether it is too far; NaN equals NaN."""
    if original.dtype.kind in "OSU":
        differs = np.asarray(original.astype(str) != converted.astype(str))
        return np.zeros(original.shape), differs
    one, other = _wide(original), _wide(converted)
    same = np.asarray((original == converted) | (np.isnan(one) & np.isnan(other)))
    far = np.where(same, 0.0, np.nan_to_num(_apart(original, converted), nan=np.inf, posinf=np.inf))
    magnitude = np.abs(one)
    finite = np.isfinite(magnitude)
    mean = max(1.0, float(magnitude[finite].mean())) if finite.any() else 1.0
    reach = np.where(finite, tolerance.absolute * mean + tolerance.relative * magnitude, 0.0)
    return far, ~same & ~(far <= reach) if tolerance != EXACT else ~same


def _apart(original: Array, converted: Array) -> Array:
    """The magnitude of the differences; that of integers is computed without loss."""
    if original.dtype.kind not in "iu":
        return np.asarray(np.abs(_wide(original) - _wide(converted)))
    more, less = np.maximum(original, converted), np.minimum(original, converted)
    return np.asarray((more.astype(np.uint64) - less.astype(np.uint64)).astype(np.float64))


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _worst(place: str, original: Array, converted: Array, far: Array, differs: Array) -> str:
    where = np.unravel_index(int(np.argmax(np.where(differs, far, -1.0))), original.shape)
    index = f"[{', '.join(map(str, where))}]" if where else ""
    counted = f"{int(differs.sum())} of {original.size} elements"
    return f"{counted}; {original[where]} at {place}{index} became {converted[where]}"
