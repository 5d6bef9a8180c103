"""Resize along one axis: where an output pixel lies on the input, and which pixels there make it up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from opshift.adapters.refusal import CannotConvert
from opshift.adapters.vectors import Vector, Vectors, spread

ONE: Vector = (1.0,)
ZERO: Vector = (0.0,)
HALF: Vector = (0.5,)
TIE = 1e-6
"""How far from the middle of two pixels onnxruntime takes a place for the middle, as rounding moved it."""
MOST_TAPS = 64
"""Of a filter whose width is only known when the model runs: the longest input that is read whole."""


class Filter(NamedTuple):
    """How Resize makes a pixel from those around the place where it lies."""

    mode: str
    coordinates: str
    rounding: str = "round_prefer_floor"
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False


class Axis(NamedTuple):
    """One dimension that is resized; each number is a vector of length 1."""

    size: Vector
    length: Vector
    scale: Vector
    start: Vector = ZERO
    end: Vector = ONE
    """The part of the input that `tf_crop_and_resize` shows."""


class Tap(NamedTuple):
    """One input pixel for every output pixel, and its share."""

    pixel: Vector
    weight: Vector = ONE


class Samples(NamedTuple):
    """What the output pixels along an axis are made of."""

    taps: tuple[Tap, ...]
    inside: Vector
    """1 where the place lies on the input; elsewhere an extrapolation value may stand."""


def samples(axis: Axis, how: Filter, vectors: Vectors) -> Samples:
    """The input pixels, and their shares, of every output pixel."""
    last = vectors.subtract(axis.size, ONE)
    index = vectors.counting(axis.length)
    place = _PLACES[how.coordinates](axis, index, vectors)
    if isinstance(place, tuple) and isinstance(index, tuple):
        place = tuple(spread(place, len(index)))
    inside: Vector = ONE
    if how.coordinates == "tf_crop_and_resize":
        outside = vectors.larger(vectors.below(place, ZERO), vectors.below(last, place))
        inside = vectors.subtract(ONE, outside)
    if how.mode == "nearest":
        pixel = vectors.clip(_ROUNDINGS[how.rounding](place, axis, vectors), ZERO, last)
        return Samples((Tap(pixel),), inside)
    if how.antialias:
        return Samples(_wide(place, axis, how, vectors), inside)
    taps = _linear(place, last, vectors) if how.mode == "linear" else _cubic(place, axis, how, vectors)
    return Samples(taps, inside)


def _linear(place: Vector, last: Vector, vectors: Vectors) -> tuple[Tap, ...]:
    place = vectors.clip(place, ZERO, last)
    low = vectors.floor(place)
    share = vectors.subtract(place, low)
    high = vectors.smaller(vectors.add(low, ONE), last)
    return Tap(low, vectors.subtract(ONE, share)), Tap(high, share)


def _cubic(place: Vector, axis: Axis, how: Filter, vectors: Vectors) -> tuple[Tap, ...]:
    """Keys' cubic over four pixels."""
    low = vectors.floor(place)
    share = vectors.subtract(place, low)
    found = []
    for offset in (-1.0, 0.0, 1.0, 2.0):
        distance = vectors.absolute(vectors.subtract(share, (offset,)))
        weight = _keys(distance, how.cubic, vectors, inner=offset in (0.0, 1.0))
        found.append(Tap(vectors.add(low, (offset,)), weight))
    if how.exclude_outside:
        return _shares(_without_outside(found, axis, vectors), vectors)
    last = vectors.subtract(axis.size, ONE)
    return tuple(Tap(vectors.clip(pixel, ZERO, last), weight) for pixel, weight in found)


def _wide(place: Vector, axis: Axis, how: Filter, vectors: Vectors) -> tuple[Tap, ...]:
    """The filter, stretched as the image shrinks; beyond the edge the edge's pixel, or none, stands."""
    stretch = vectors.smaller(axis.scale, ONE)
    found = []
    for pixel in _near(place, axis, stretch, how, vectors):
        distance = vectors.multiply(vectors.absolute(vectors.subtract(pixel, place)), stretch)
        tent = vectors.larger(vectors.subtract(ONE, distance), ZERO)
        found.append(Tap(pixel, tent if how.mode == "linear" else _keys(distance, how.cubic, vectors)))
    if how.exclude_outside:
        found = _without_outside(found, axis, vectors)
    last = vectors.subtract(axis.size, ONE)
    shares = _shares(found, vectors)
    return tuple(Tap(vectors.clip(pixel, ZERO, last), weight) for pixel, weight in shares)


def _near(place: Vector, axis: Axis, stretch: Vector, how: Filter, vectors: Vectors) -> list[Vector]:
    """The pixels that a stretched filter may reach."""
    width = 1 if how.mode == "linear" else 2
    if isinstance(stretch, tuple):
        reach = math.ceil(width / stretch[0])
        low = vectors.floor(place)
        return [vectors.add(low, (float(offset),)) for offset in range(1 - reach, reach + 1)]
    size = int(axis.size[0]) if isinstance(axis.size, tuple) else MOST_TAPS
    beyond = 0 if how.exclude_outside else width * size
    if size + 2 * beyond <= MOST_TAPS:
        return [(float(pixel),) for pixel in range(-beyond, size + beyond)]
    raise CannotConvert(
        "it is antialiased by scales that are computed, so the width of its filter is not known",
        remedy="make scales or sizes an initializer that is no graph input",
    )


def _without_outside(found: list[Tap], axis: Axis, vectors: Vectors) -> list[Tap]:
    """Pixels beyond the edge have no weight."""
    last = vectors.subtract(axis.size, ONE)
    inner = []
    for pixel, weight in found:
        bounded = vectors.clip(pixel, ZERO, last)
        distance = vectors.absolute(vectors.subtract(pixel, bounded))
        inner.append(Tap(bounded, vectors.multiply(weight, vectors.below(distance, HALF))))
    return inner


def _shares(found: list[Tap], vectors: Vectors) -> tuple[Tap, ...]:
    """Weights that add up to one."""
    total: Vector = ZERO
    for _, weight in found:
        total = vectors.add(total, weight)
    return tuple(Tap(pixel, vectors.divide(weight, total)) for pixel, weight in found)


def _keys(distance: Vector, a: float, vectors: Vectors, inner: bool | None = None) -> Vector:
    """Keys' cubic at a distance; `inner` tells, if known, whether that is below 1."""
    near = _polynomial(distance, (a + 2, -(a + 3), 0.0, 1.0), vectors)
    far = _polynomial(distance, (a, -5 * a, 8 * a, -4 * a), vectors)
    if inner is not None:
        return near if inner else far
    there = vectors.below(distance, ONE)
    return vectors.multiply(vectors.choose(there, near, far), vectors.below(distance, (2.0,)))


def _polynomial(value: Vector, coefficients: tuple[float, ...], vectors: Vectors) -> Vector:
    total: Vector = (coefficients[0],)
    for each in coefficients[1:]:
        total = vectors.add(vectors.multiply(total, value), (each,))
    return total


def _half_pixel(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    return vectors.subtract(_without_shift(axis, index, vectors), HALF)


def _without_shift(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    return vectors.divide(vectors.add(index, HALF), axis.scale)


def _pytorch_half_pixel(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    return vectors.choose(_is_single(axis, vectors), ZERO, _half_pixel(axis, index, vectors))


def _half_pixel_symmetric(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    adjustment = vectors.divide(axis.length, vectors.multiply(axis.scale, axis.size))
    centre = vectors.divide(axis.size, (2.0,))
    offset = vectors.multiply(centre, vectors.subtract(ONE, adjustment))
    double = vectors.in_double()
    moved = double.add(offset, _without_shift(axis, index, double))
    return vectors.to_single(double.subtract(moved, HALF))


def _asymmetric(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    return vectors.divide(index, axis.scale)


def _align_corners(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    last = vectors.subtract(axis.size, ONE)
    return vectors.divide(vectors.multiply(index, last), _steps(axis, vectors))


def _crop(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    last = vectors.subtract(axis.size, ONE)
    share = vectors.multiply(index, vectors.subtract(axis.end, axis.start))
    moved = vectors.divide(vectors.multiply(share, last), _steps(axis, vectors))
    centre = vectors.multiply(vectors.multiply(HALF, vectors.add(axis.start, axis.end)), last)
    place = vectors.add(vectors.multiply(axis.start, last), moved)
    return vectors.choose(_is_single(axis, vectors), centre, place)


def _steps(axis: Axis, vectors: Vectors) -> Vector:
    """From the first output pixel to the last; a single one stays at the first."""
    return vectors.larger(vectors.subtract(axis.length, ONE), ONE)


def _is_single(axis: Axis, vectors: Vectors) -> Vector:
    return vectors.below(axis.length, (1.5,))


def _nearer_or_lower(place: Vector, _: Axis, vectors: Vectors) -> Vector:
    low = vectors.floor(place)
    return vectors.add(low, vectors.below((0.5 + TIE,), vectors.subtract(place, low)))


def _nearer_or_higher(place: Vector, _: Axis, vectors: Vectors) -> Vector:
    low = vectors.floor(place)
    lower = vectors.below(vectors.subtract(place, low), (0.5 - TIE,))
    return vectors.subtract(vectors.add(low, ONE), lower)


def _by_direction(place: Vector, axis: Axis, vectors: Vectors) -> Vector:
    """Up where the image shrinks, down where it does not: what version 10 is run as."""
    shrinks = vectors.below(axis.scale, ONE)
    return vectors.choose(shrinks, vectors.ceil(place), vectors.floor(place))


_PLACES: dict[str, Callable[[Axis, Vector, Vectors], Vector]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "tf_half_pixel_for_nn": _without_shift,
    "asymmetric": _asymmetric,
    "align_corners": _align_corners,
    "tf_crop_and_resize": _crop,
}
_ROUNDINGS: dict[str, Callable[[Vector, Axis, Vectors], Vector]] = {
    "round_prefer_floor": _nearer_or_lower,
    "round_prefer_ceil": _nearer_or_higher,
    "floor": lambda place, _, vectors: vectors.floor(place),
    "ceil": lambda place, _, vectors: vectors.ceil(place),
    "by_direction": _by_direction,
}
