"""Resize along one axis: input coordinate of each output pixel, and weights of the input pixels near it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from opshift.adapters.ops.tensor.resize.vectors import Vector, Vectors, repeat_to_length
from opshift.model.errors import CannotConvert

ONE: Vector = (1.0,)

ZERO: Vector = (0.0,)

HALF: Vector = (0.5,)

TIE_TOLERANCE = 1e-6
"""Distance from the midpoint of two pixels within which onnxruntime treats a coordinate as the midpoint."""

MAX_TAPS = 64
"""Maximum number of pixels that an output pixel reads if the width of its filter is known only at run time.

Each pixel costs a Gather and its weights in the converted model.
"""


class Sampling(NamedTuple):
    """Method that computes an output pixel from the input pixels around its coordinate."""

    mode: str
    coordinates: str
    rounding: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False


class ResizeAxis(NamedTuple):
    """One resized dimension; each number is a vector of length 1."""

    size: Vector
    """Input size."""
    length: Vector
    """Output size."""
    scale: Vector
    start: Vector = ZERO
    end: Vector = ONE
    """Region of the input that `tf_crop_and_resize` shows, from `start` to `end` in [0, 1]."""


class ResizeTap(NamedTuple):
    """One input pixel for every output pixel, and its weight."""

    pixel: Vector
    weight: Vector = ONE


class Samples(NamedTuple):
    """Input pixels that the output pixels along an axis consist of."""

    taps: tuple[ResizeTap, ...]
    inside: Vector
    """1 if the coordinate is on the input; an extrapolation value may replace other pixels."""


def sample_axis(axis: ResizeAxis, sampling: Sampling, vectors: Vectors) -> Samples:
    """Return the input pixels and weights of every output pixel."""
    last = vectors.subtract(axis.size, ONE)
    index = vectors.arange(axis.length)
    coordinate = _COORDINATES[sampling.coordinates](axis, index, vectors)
    if isinstance(coordinate, tuple) and isinstance(index, tuple):
        coordinate = tuple(repeat_to_length(coordinate, len(index)))
    inside: Vector = ONE
    if sampling.coordinates == "tf_crop_and_resize":
        outside = vectors.maximum(vectors.less_than(coordinate, ZERO), vectors.less_than(last, coordinate))
        inside = vectors.subtract(ONE, outside)
    if sampling.mode == "nearest":
        pixel = vectors.clip(_ROUNDINGS[sampling.rounding](coordinate, axis, vectors), ZERO, last)
        return Samples((ResizeTap(pixel),), inside)
    if sampling.antialias:
        return Samples(_antialiased(coordinate, axis, sampling, vectors), inside)
    taps = (
        _linear(coordinate, last, vectors)
        if sampling.mode == "linear"
        else _cubic(coordinate, axis, sampling, vectors)
    )
    return Samples(taps, inside)


def _antialiased(
    coordinate: Vector, axis: ResizeAxis, sampling: Sampling, vectors: Vectors
) -> tuple[ResizeTap, ...]:
    """Return the taps of a filter that widens as the image shrinks; pixels outside are clamped or masked."""
    shrinkage = vectors.minimum(axis.scale, ONE)
    taps = []
    for pixel in _candidates(coordinate, axis, shrinkage, sampling, vectors):
        distance = vectors.multiply(vectors.absolute(vectors.subtract(pixel, coordinate)), shrinkage)
        tent = vectors.maximum(vectors.subtract(ONE, distance), ZERO)
        taps.append(
            ResizeTap(
                pixel,
                tent
                if sampling.mode == "linear"
                else _cubic_weight(distance, sampling.cubic_coeff_a, vectors),
            )
        )
    if sampling.exclude_outside:
        taps = _mask_outside(taps, axis, vectors)
    last = vectors.subtract(axis.size, ONE)
    normalized = _normalize_weights(taps, vectors)
    return tuple(ResizeTap(vectors.clip(pixel, ZERO, last), weight) for pixel, weight in normalized)


def _candidates(
    coordinate: Vector, axis: ResizeAxis, shrinkage: Vector, sampling: Sampling, vectors: Vectors
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
    size = int(axis.size[0]) if isinstance(axis.size, tuple) else MAX_TAPS
    margin = 0 if sampling.exclude_outside else width * size
    if size + 2 * margin <= MAX_TAPS:
        return [(float(pixel),) for pixel in range(-margin, size + margin)]
    raise CannotConvert(
        "antialias is set and the scales are computed, so the width of the filter is unknown",
        remedy="make scales or sizes an initializer that is not a graph input",
    )


def _cubic_weight(distance: Vector, a: float, vectors: Vectors, inner: bool | None = None) -> Vector:
    """Return the weight of Keys' cubic kernel with coefficient `a` at a distance.

    `inner` is whether the distance is below 1, or `None` if it varies.
    """
    near = _polynomial(distance, (a + 2, -(a + 3), 0.0, 1.0), vectors)
    far = _polynomial(distance, (a, -5 * a, 8 * a, -4 * a), vectors)
    if inner is not None:
        return near if inner else far
    is_near = vectors.less_than(distance, ONE)
    return vectors.multiply(vectors.select(is_near, near, far), vectors.less_than(distance, (2.0,)))


def _polynomial(value: Vector, coefficients: tuple[float, ...], vectors: Vectors) -> Vector:
    total: Vector = (coefficients[0],)
    for coefficient in coefficients[1:]:
        total = vectors.add(vectors.multiply(total, value), (coefficient,))
    return total


def _mask_outside(taps: list[ResizeTap], axis: ResizeAxis, vectors: Vectors) -> list[ResizeTap]:
    """Set the weights of pixels beyond the edge to zero."""
    last = vectors.subtract(axis.size, ONE)
    masked = []
    for pixel, weight in taps:
        clamped = vectors.clip(pixel, ZERO, last)
        distance = vectors.absolute(vectors.subtract(pixel, clamped))
        masked.append(ResizeTap(clamped, vectors.multiply(weight, vectors.less_than(distance, HALF))))
    return masked


def _normalize_weights(taps: list[ResizeTap], vectors: Vectors) -> tuple[ResizeTap, ...]:
    """Divide weights by their sum."""
    total: Vector = ZERO
    for _, weight in taps:
        total = vectors.add(total, weight)
    return tuple(ResizeTap(pixel, vectors.divide(weight, total)) for pixel, weight in taps)


def _linear(coordinate: Vector, last: Vector, vectors: Vectors) -> tuple[ResizeTap, ...]:
    coordinate = vectors.clip(coordinate, ZERO, last)
    lower = vectors.floor(coordinate)
    fraction = vectors.subtract(coordinate, lower)
    upper = vectors.minimum(vectors.add(lower, ONE), last)
    return ResizeTap(lower, vectors.subtract(ONE, fraction)), ResizeTap(upper, fraction)


def _cubic(
    coordinate: Vector, axis: ResizeAxis, sampling: Sampling, vectors: Vectors
) -> tuple[ResizeTap, ...]:
    """Return the taps of Keys' cubic convolution over four pixels."""
    lower = vectors.floor(coordinate)
    fraction = vectors.subtract(coordinate, lower)
    taps = []
    for offset in (-1.0, 0.0, 1.0, 2.0):
        distance = vectors.absolute(vectors.subtract(fraction, (offset,)))
        weight = _cubic_weight(distance, sampling.cubic_coeff_a, vectors, inner=offset in (0.0, 1.0))
        taps.append(ResizeTap(vectors.add(lower, (offset,)), weight))
    if sampling.exclude_outside:
        return _normalize_weights(_mask_outside(taps, axis, vectors), vectors)
    last = vectors.subtract(axis.size, ONE)
    return tuple(ResizeTap(vectors.clip(pixel, ZERO, last), weight) for pixel, weight in taps)


def _half_pixel(axis: ResizeAxis, index: Vector, vectors: Vectors) -> Vector:
    return vectors.subtract(_half_pixel_for_nearest(axis, index, vectors), HALF)


def _half_pixel_for_nearest(axis: ResizeAxis, index: Vector, vectors: Vectors) -> Vector:
    return vectors.divide(vectors.add(index, HALF), axis.scale)


def _pytorch_half_pixel(axis: ResizeAxis, index: Vector, vectors: Vectors) -> Vector:
    return vectors.select(_is_single(axis, vectors), ZERO, _half_pixel(axis, index, vectors))


def _half_pixel_symmetric(axis: ResizeAxis, index: Vector, vectors: Vectors) -> Vector:
    adjustment = vectors.divide(axis.length, vectors.multiply(axis.scale, axis.size))
    center = vectors.divide(axis.size, (2.0,))
    offset = vectors.multiply(center, vectors.subtract(ONE, adjustment))
    double = vectors.in_double()
    moved = double.add(offset, _half_pixel_for_nearest(axis, index, double))
    return vectors.to_single(double.subtract(moved, HALF))


def _asymmetric(axis: ResizeAxis, index: Vector, vectors: Vectors) -> Vector:
    return vectors.divide(index, axis.scale)


def _align_corners(axis: ResizeAxis, index: Vector, vectors: Vectors) -> Vector:
    last = vectors.subtract(axis.size, ONE)
    return vectors.divide(vectors.multiply(index, last), _intervals(axis, vectors))


def _crop_and_resize(axis: ResizeAxis, index: Vector, vectors: Vectors) -> Vector:
    last = vectors.subtract(axis.size, ONE)
    fraction = vectors.multiply(index, vectors.subtract(axis.end, axis.start))
    offset = vectors.divide(vectors.multiply(fraction, last), _intervals(axis, vectors))
    center = vectors.multiply(vectors.multiply(HALF, vectors.add(axis.start, axis.end)), last)
    coordinate = vectors.add(vectors.multiply(axis.start, last), offset)
    return vectors.select(_is_single(axis, vectors), center, coordinate)


def _intervals(axis: ResizeAxis, vectors: Vectors) -> Vector:
    """Return the number of steps from the first output pixel to the last; at least 1 to divide by."""
    return vectors.maximum(vectors.subtract(axis.length, ONE), ONE)


def _is_single(axis: ResizeAxis, vectors: Vectors) -> Vector:
    return vectors.less_than(axis.length, (1.5,))


def _round_half_down(coordinate: Vector, _: ResizeAxis, vectors: Vectors) -> Vector:
    lower = vectors.floor(coordinate)
    return vectors.add(lower, vectors.less_than((0.5 + TIE_TOLERANCE,), vectors.subtract(coordinate, lower)))


def _round_half_up(coordinate: Vector, _: ResizeAxis, vectors: Vectors) -> Vector:
    floor = vectors.floor(coordinate)
    is_lower = vectors.less_than(vectors.subtract(coordinate, floor), (0.5 - TIE_TOLERANCE,))
    return vectors.subtract(vectors.add(floor, ONE), is_lower)


def _round_by_direction(coordinate: Vector, axis: ResizeAxis, vectors: Vectors) -> Vector:
    """Round up to shrink and down to enlarge, like runtimes do for version 10."""
    shrinks = vectors.less_than(axis.scale, ONE)
    return vectors.select(shrinks, vectors.ceil(coordinate), vectors.floor(coordinate))


_COORDINATES: dict[str, Callable[[ResizeAxis, Vector, Vectors], Vector]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "tf_half_pixel_for_nn": _half_pixel_for_nearest,
    "asymmetric": _asymmetric,
    "align_corners": _align_corners,
    "tf_crop_and_resize": _crop_and_resize,
}

_ROUNDINGS: dict[str, Callable[[Vector, ResizeAxis, Vectors], Vector]] = {
    "round_prefer_floor": _round_half_down,
    "round_prefer_ceil": _round_half_up,
    "floor": lambda coordinate, _, vectors: vectors.floor(coordinate),
    "ceil": lambda coordinate, _, vectors: vectors.ceil(coordinate),
    "by_direction": _round_by_direction,
}
