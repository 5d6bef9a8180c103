"""Weights of input pixels by their distance from the coordinate of an output pixel."""

from typing import NamedTuple

from opshift.adapters.ops.tensor.resize.vectors import Vector


class Sampling(NamedTuple):
    """Method that computes an output pixel from the input pixels around its coordinate."""

    mode: str
    coordinates: str
    rounding: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False


def filter_width(sampling: Sampling) -> int:
    """Return the distance from which on weights are 0, without antialiasing."""
    return 1 if sampling.mode == "linear" else 2


def filter_weight(pixel: Vector, coordinate: Vector, shrinkage: Vector, sampling: Sampling) -> Vector:
    """Return the weight of each pixel; the filter is stretched by the inverse of `shrinkage`."""
    distance = abs(pixel - coordinate) * shrinkage
    if sampling.mode == "cubic":
        return cubic_weight(distance, sampling.cubic_coeff_a)
    return (1 - distance).apply("Max", 0)


def cubic_weight(distance: Vector, a: float, inner: bool | None = None) -> Vector:
    """Return the weight of Keys' cubic kernel; `inner` is whether all distances are below 1, if known."""
    near = _polynomial(distance, (a + 2, -(a + 3), 0.0, 1.0))
    far = _polynomial(distance, (a, -5 * a, 8 * a, -4 * a))
    if inner is not None:
        return near if inner else far
    return distance.less_than(1).select(near, far) * distance.less_than(2)


def _polynomial(value: Vector, coefficients: tuple[float, ...]) -> Vector:
    total = Vector(coefficients[:1])
    for coefficient in coefficients[1:]:
        total = total * value + coefficient
    return total
