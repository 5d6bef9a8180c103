"""Resize along one axis: input coordinate of each output pixel, and weights of the input pixels near it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from opshift.adapters.ops.tensor.resize.vectors import Vector, Vectors, spread
from opshift.model.errors import CannotConvert

ONE: Vector = (1.0,)

ZERO: Vector = (0.0,)

HALF: Vector = (0.5,)

TIE = 1e-6
"""Distance from the midpoint of two pixels within which onnxruntime treats a coordinate as the midpoint."""

MOST_TAPS = 64
"""Maximum number of pixels that an output pixel reads if the width of its filter is known only at run time.

Each pixel costs a Gather and its weights in the converted model.
"""


class Filter(NamedTuple):
    """Method that computes an output pixel from the input pixels around its coordinate."""

    mode: str
    coordinates: str
    rounding: str = "round_prefer_floor"
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False


class Axis(NamedTuple):
    """One resized dimension; each number is a vector of length 1."""

    size: Vector
    """Input size."""
    length: Vector
    """Output size."""
    scale: Vector
    start: Vector = ZERO
    end: Vector = ONE
    """Region of the input that `tf_crop_and_resize` shows, from `start` to `end` in [0, 1]."""


class Tap(NamedTuple):
    """One input pixel for every output pixel, and its weight."""

    pixel: Vector
    weight: Vector = ONE


class Samples(NamedTuple):
    """Input pixels that the output pixels along an axis consist of."""

    taps: tuple[Tap, ...]
    inside: Vector
    """1 if the coordinate is on the input; an extrapolation value may replace other pixels."""


def samples(axis: Axis, sampling: Filter, vectors: Vectors) -> Samples:
    """Return the input pixels and weights of every output pixel."""
    last = vectors.subtract(axis.size, ONE)
    index = vectors.counting(axis.length)
    coordinate = _COORDINATES[sampling.coordinates](axis, index, vectors)
    if isinstance(coordinate, tuple) and isinstance(index, tuple):
        coordinate = tuple(spread(coordinate, len(index)))
    inside: Vector = ONE
    if sampling.coordinates == "tf_crop_and_resize":
        outside = vectors.larger(vectors.below(coordinate, ZERO), vectors.below(last, coordinate))
        inside = vectors.subtract(ONE, outside)
    if sampling.mode == "nearest":
        pixel = vectors.clip(_ROUNDINGS[sampling.rounding](coordinate, axis, vectors), ZERO, last)
        return Samples((Tap(pixel),), inside)
    if sampling.antialias:
        return Samples(_antialiased(coordinate, axis, sampling, vectors), inside)
    taps = (
        _linear(coordinate, last, vectors)
        if sampling.mode == "linear"
        else _cubic(coordinate, axis, sampling, vectors)
    )
    return Samples(taps, inside)


def _linear(coordinate: Vector, last: Vector, vectors: Vectors) -> tuple[Tap, ...]:
    coordinate = vectors.clip(coordinate, ZERO, last)
    lower = vectors.floor(coordinate)
    fraction = vectors.subtract(coordinate, lower)
    upper = vectors.smaller(vectors.add(lower, ONE), last)
    return Tap(lower, vectors.subtract(ONE, fraction)), Tap(upper, fraction)


def _cubic(coordinate: Vector, axis: Axis, sampling: Filter, vectors: Vectors) -> tuple[Tap, ...]:
    """Return the taps of Keys' cubic convolution over four pixels."""
    lower = vectors.floor(coordinate)
    fraction = vectors.subtract(coordinate, lower)
    taps = []
    for offset in (-1.0, 0.0, 1.0, 2.0):
        distance = vectors.absolute(vectors.subtract(fraction, (offset,)))
        weight = _cubic_weight(distance, sampling.cubic, vectors, inner=offset in (0.0, 1.0))
        taps.append(Tap(vectors.add(lower, (offset,)), weight))
    if sampling.exclude_outside:
        return _normalize_weights(_mask_outside(taps, axis, vectors), vectors)
    last = vectors.subtract(axis.size, ONE)
    return tuple(Tap(vectors.clip(pixel, ZERO, last), weight) for pixel, weight in taps)


def _antialiased(coordinate: Vector, axis: Axis, sampling: Filter, vectors: Vectors) -> tuple[Tap, ...]:
    """Return the taps of a filter that widens as the image shrinks; pixels outside are clamped or masked."""
    shrinkage = vectors.smaller(axis.scale, ONE)
    taps = []
    for pixel in _candidates(coordinate, axis, shrinkage, sampling, vectors):
        distance = vectors.multiply(vectors.absolute(vectors.subtract(pixel, coordinate)), shrinkage)
        tent = vectors.larger(vectors.subtract(ONE, distance), ZERO)
        taps.append(
            Tap(
                pixel, tent if sampling.mode == "linear" else _cubic_weight(distance, sampling.cubic, vectors)
            )
        )
    if sampling.exclude_outside:
        taps = _mask_outside(taps, axis, vectors)
    last = vectors.subtract(axis.size, ONE)
    normalized = _normalize_weights(taps, vectors)
    return tuple(Tap(vectors.clip(pixel, ZERO, last), weight) for pixel, weight in normalized)


def _candidates(
    coordinate: Vector, axis: Axis, shrinkage: Vector, sampling: Filter, vectors: Vectors
) -> list[Vector]:
    """Return the pixels that an antialiasing filter may reach.

    Raises:
        CannotConvert: the width of the filter is known only at run time, and the input may be too long.
    """
    width = 1 if sampling.mode == "linear" else 2
    if isinstance(shrinkage, tuple):
        reach = math.ceil(width / shrinkage[0])
        lower = vectors.floor(coordinate)
        return [vectors.add(lower, (float(offset),)) for offset in range(1 - reach, reach + 1)]
    size = int(axis.size[0]) if isinstance(axis.size, tuple) else MOST_TAPS
    margin = 0 if sampling.exclude_outside else width * size
    if size + 2 * margin <= MOST_TAPS:
        return [(float(pixel),) for pixel in range(-margin, size + margin)]
    raise CannotConvert(
        "antialias is set and the scales are computed, so the width of the filter is unknown",
        remedy="make scales or sizes an initializer that is not a graph input",
    )


def _mask_outside(taps: list[Tap], axis: Axis, vectors: Vectors) -> list[Tap]:
    """Set the weights of pixels beyond the edge to zero."""
    last = vectors.subtract(axis.size, ONE)
    masked = []
    for pixel, weight in taps:
        clamped = vectors.clip(pixel, ZERO, last)
        distance = vectors.absolute(vectors.subtract(pixel, clamped))
        masked.append(Tap(clamped, vectors.multiply(weight, vectors.below(distance, HALF))))
    return masked


def _normalize_weights(taps: list[Tap], vectors: Vectors) -> tuple[Tap, ...]:
    """Divide weights by their sum."""
    total: Vector = ZERO
    for _, weight in taps:
        total = vectors.add(total, weight)
    return tuple(Tap(pixel, vectors.divide(weight, total)) for pixel, weight in taps)


def _cubic_weight(distance: Vector, a: float, vectors: Vectors, inner: bool | None = None) -> Vector:
    """Return the weight of Keys' cubic kernel with coefficient `a` at a distance.

    `inner` is whether the distance is below 1, or `None` if it varies.
    """
    near = _polynomial(distance, (a + 2, -(a + 3), 0.0, 1.0), vectors)
    far = _polynomial(distance, (a, -5 * a, 8 * a, -4 * a), vectors)
    if inner is not None:
        return near if inner else far
    is_near = vectors.below(distance, ONE)
    return vectors.multiply(vectors.choose(is_near, near, far), vectors.below(distance, (2.0,)))


def _polynomial(value: Vector, coefficients: tuple[float, ...], vectors: Vectors) -> Vector:
    total: Vector = (coefficients[0],)
    for coefficient in coefficients[1:]:
        total = vectors.add(vectors.multiply(total, value), (coefficient,))
    return total


def _half_pixel(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    return vectors.subtract(_half_pixel_for_nearest(axis, index, vectors), HALF)


def _half_pixel_for_nearest(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    return vectors.divide(vectors.add(index, HALF), axis.scale)


def _pytorch_half_pixel(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    return vectors.choose(_is_single(axis, vectors), ZERO, _half_pixel(axis, index, vectors))


def _half_pixel_symmetric(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    adjustment = vectors.divide(axis.length, vectors.multiply(axis.scale, axis.size))
    center = vectors.divide(axis.size, (2.0,))
    offset = vectors.multiply(center, vectors.subtract(ONE, adjustment))
    double = vectors.in_double()
    moved = double.add(offset, _half_pixel_for_nearest(axis, index, double))
    return vectors.to_single(double.subtract(moved, HALF))


def _asymmetric(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    return vectors.divide(index, axis.scale)


def _align_corners(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    last = vectors.subtract(axis.size, ONE)
    return vectors.divide(vectors.multiply(index, last), _intervals(axis, vectors))


def _crop_and_resize(axis: Axis, index: Vector, vectors: Vectors) -> Vector:
    last = vectors.subtract(axis.size, ONE)
    fraction = vectors.multiply(index, vectors.subtract(axis.end, axis.start))
    offset = vectors.divide(vectors.multiply(fraction, last), _intervals(axis, vectors))
    center = vectors.multiply(vectors.multiply(HALF, vectors.add(axis.start, axis.end)), last)
    coordinate = vectors.add(vectors.multiply(axis.start, last), offset)
    return vectors.choose(_is_single(axis, vectors), center, coordinate)


def _intervals(axis: Axis, vectors: Vectors) -> Vector:
    """Return the number of steps from the first output pixel to the last; at least 1 to divide by."""
    return vectors.larger(vectors.subtract(axis.length, ONE), ONE)


def _is_single(axis: Axis, vectors: Vectors) -> Vector:
    return vectors.below(axis.length, (1.5,))


def _round_half_down(coordinate: Vector, _: Axis, vectors: Vectors) -> Vector:
    lower = vectors.floor(coordinate)
    return vectors.add(lower, vectors.below((0.5 + TIE,), vectors.subtract(coordinate, lower)))


def _round_half_up(coordinate: Vector, _: Axis, vectors: Vectors) -> Vector:
    floor = vectors.floor(coordinate)
    is_lower = vectors.below(vectors.subtract(coordinate, floor), (0.5 - TIE,))
    return vectors.subtract(vectors.add(floor, ONE), is_lower)


def _round_by_direction(coordinate: Vector, axis: Axis, vectors: Vectors) -> Vector:
    """Round up to shrink and down to enlarge, like runtimes do for version 10."""
    shrinks = vectors.below(axis.scale, ONE)
    return vectors.choose(shrinks, vectors.ceil(coordinate), vectors.floor(coordinate))


_COORDINATES: dict[str, Callable[[Axis, Vector, Vectors], Vector]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "tf_half_pixel_for_nn": _half_pixel_for_nearest,
    "asymmetric": _asymmetric,
    "align_corners": _align_corners,
    "tf_crop_and_resize": _crop_and_resize,
}

_ROUNDINGS: dict[str, Callable[[Vector, Axis, Vectors], Vector]] = {
    "round_prefer_floor": _round_half_down,
    "round_prefer_ceil": _round_half_up,
    "floor": lambda coordinate, _, vectors: vectors.floor(coordinate),
    "ceil": lambda coordinate, _, vectors: vectors.ceil(coordinate),
    "by_direction": _round_by_direction,
}
