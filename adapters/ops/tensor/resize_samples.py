"""Resize along one axis: compute the input pixels that make up each output pixel, and their weights.

Vectors of coordinates and weights are computed in Python if they are known, otherwise by emitted nodes.
"""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Self

from opshift.adapters import CannotConvert, Rewriter, Tensor
from opshift.adapters.core.rewriter import require_at_most
from opshift.adapters.emit.expression import Arithmetic, Expression
from opshift.adapters.emit.shapes import index_range, reshape
from opshift.model.errors import UNKNOWN_CONSTANT

OPSET = 9
"""Opset of the emitted nodes."""

BROADCASTING_MIN_OPSET = 8
"""First opset in which Min broadcasts; in older opsets, Min becomes many nodes."""

MAX_WEIGHTS = 1 << 17
"""Maximum number of weights with antialiasing; each weight takes many steps to compute."""


Contents = tuple[float, ...] | Expression


class Vector(Arithmetic[Contents]):
    """Vector of float32: a tuple if the numbers are known, else a tensor; a vector of length 1 broadcasts."""

    __slots__ = ()

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """The known numbers, or `None` if a tensor holds the vector."""
        return self.content if isinstance(self.content, tuple) else None

    def less_than(self, other: Self | float) -> Self:
        """Return a vector with 1 for each number that is less than the number in `other`, else 0."""
        less = self.apply("Less", other)
        return less if isinstance(less.content, tuple) else self._with(less.content.cast("float"))

    def select(self, yes: Self, no: Self) -> Self:
        """Return numbers of `yes` where this vector is 1, and of `no` where 0; all must be finite."""
        if self.numbers is not None and len(set(self.numbers)) == 1:
            return yes if self.numbers[0] else no
        return no + self * (yes - no)

    def clip(self, high: Self) -> Self:
        """Clamp each number to the range from 0 to `high`, an integer."""
        return self.apply("Relu").at_most(high)

    def at_most(self, high: Self) -> Self:
        """Replace numbers above `high` by `high`; all numbers are below 2**24, and `high` is an integer."""
        if _has_broadcasting_min(self.content, high.content):
            return self.apply("Min", high)
        # Both differences are exact, because `high` is a multiple of the precision of each larger number;
        # infinity and many numbers above 2**24 would give inexact differences.
        return self - (self - high).apply("Relu")

    def at_least_one(self) -> Self:
        """Replace integers below 1 by 1."""
        return self.apply("Max", 1) if _has_broadcasting_min(self.content) else (self - 1).apply("Relu") + 1

    def as_int64(self, out: Rewriter) -> str:
        """Return the name of an int64 tensor that holds the vector."""
        if isinstance(self.content, tuple):
            return out.int64(map(int, self.content))
        return self.content.cast("int64").name

    def as_column(self, trailing: int, element_type: str, out: Rewriter) -> str:
        """Return the name of a tensor that holds the vector, with `trailing` more dimensions of size 1."""
        if isinstance(self.content, tuple):
            return out.tensor(Tensor(element_type, (len(self.content), *[1] * trailing), self.content))
        name = self.content.name
        if trailing:
            name = reshape(name, (-1, *[1] * trailing), out)
        return name if element_type == "float" else out.cast(name, element_type)

    def as_name(self) -> str:
        """Return the name of the tensor that holds a computed vector."""
        assert isinstance(self.content, Expression), "the vector is constant"
        return self.content.name

    def indices(self, out: Rewriter) -> Vector:
        """Return the integers from 0 to `n - 1`, where n is the only number of this vector."""
        if isinstance(self.content, tuple):
            return Vector(tuple(map(float, range(int(self.content[0])))))
        return computed_vector(out.cast(index_range(self.as_int64(out), out), "float"), out)

    def _emit(self, op_type: str, operands: Sequence[Contents | float], opset: int | None) -> Contents:
        """Compute the numbers as a runtime does, in float32, or emit the operator for operands in tensors."""
        contents = [each if isinstance(each, tuple | Expression) else (float(each),) for each in operands]
        known = [each for each in contents if isinstance(each, tuple)]
        if len(known) == len(contents):
            return elementwise(_FUNCTIONS[op_type], *known)
        scope = next(each for each in contents if isinstance(each, Expression))
        inputs = [scope.constant(each) if isinstance(each, tuple) else each for each in contents]
        return scope.emit(op_type, *inputs, opset=opset)

    def _with(self, content: Contents) -> Self:
        return type(self)(content)


def _has_broadcasting_min(*contents: Contents) -> bool:
    """Return whether the numbers are known, or the target has Min and Max that broadcast."""
    opsets = [each.default_opset for each in contents if isinstance(each, Expression)]
    return all(opset >= BROADCASTING_MIN_OPSET for opset in opsets)


def computed_vector(name: str, out: Rewriter) -> Vector:
    """Return the float tensor `name` as a vector."""
    return Vector(Expression(name, "float", out))


def elementwise(function: Callable[..., float], *vectors: Sequence[float]) -> tuple[float, ...]:
    """Apply a function to the numbers at each position, and round each result to float32."""
    length = max(map(len, vectors)) if all(vectors) else 0
    # `array("f")` rounds to float32 much faster than one call for each number.
    return tuple(array("f", map(function, *(repeat_to_length(each, length) for each in vectors))))


def repeat_to_length(values: Sequence[float], length: int) -> Sequence[float]:
    """Repeat a single number `length` times; return other vectors unchanged."""
    return values if len(values) == length else list(values) * length


def _float_quotient(first: float, second: float) -> float:
    # Python raises an error for a division by zero; a runtime returns infinity or NaN.
    if second:
        return first / second
    return math.copysign(math.inf, first) if first else math.nan


_FUNCTIONS: dict[str, Callable[..., float]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": _float_quotient,
    "Min": min,
    "Max": max,
    "Floor": math.floor,
    "Ceil": math.ceil,
    "Abs": math.fabs,
    "Relu": lambda number: max(number, 0.0),
    "Less": operator.lt,
}


class Sampling(NamedTuple):
    """Sampling method of Resize: interpolation mode, coordinate mode, rounding mode and filter."""

    mode: str
    coordinates: str
    rounding: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False


def filter_width(sampling: Sampling) -> int:
    """Return half the filter width in pixels, without antialiasing: more distant pixels have weight 0."""
    return 1 if sampling.mode == "linear" else 2


def filter_weight(pixel: Vector, coordinate: Vector, shrinkage: Vector, sampling: Sampling) -> Vector:
    """Return the weight of each pixel; a `shrinkage` s below 1 widens the filter by the factor 1 / s."""
    distance = abs(pixel - coordinate) * shrinkage
    if sampling.mode == "cubic":
        return cubic_weight(distance, sampling.cubic_coeff_a)
    return (1 - distance).apply("Relu")


def cubic_weight(distance: Vector, a: float, inner: bool | None = None) -> Vector:
    """Return the weights of Keys' kernel at some distances.

    `inner` is True for distances up to 1, False for distances from 1 to 2, and None for arbitrary ones.
    """
    near = _evaluate_polynomial(distance, (a + 2, -(a + 3), 0.0, 1.0))
    far = _evaluate_polynomial(distance, (a, -5 * a, 8 * a, -4 * a))
    if inner is not None:
        return near if inner else far
    return distance.less_than(1).select(near, far) * distance.less_than(2)


def _evaluate_polynomial(value: Vector, coefficients: tuple[float, ...]) -> Vector:
    total = Vector(coefficients[:1])
    for coefficient in coefficients[1:]:
        total = total * value + coefficient
    return total


ONE = Vector((1.0,))

ZERO = Vector((0.0,))

TIE_TOLERANCE = 1e-6
"""Distance from the midpoint of two pixels within which onnxruntime treats a coordinate as the midpoint."""

MAX_PIXELS = 1 << 12
"""Maximum number of input pixels for a filter of computed width: each output pixel has a weight for each."""


class ResizeAxis(NamedTuple):
    """One resized dimension; each number is a vector of length 1."""

    size: Vector
    """Input size."""
    length: Vector
    """Output size."""
    scale: Vector
    start: Vector = ZERO
    end: Vector = ONE
    """Region of the input that `tf_crop_and_resize` resizes, from `start` to `end` in [0, 1]."""


class ResizeTap(NamedTuple):
    """One weighted input pixel for each output pixel; linear sampling has two taps, cubic four."""

    pixel: Vector
    """Number of the pixel, which may have a fraction; `as_int64` truncates it."""
    weight: Vector = ONE


class WeightMatrix(NamedTuple):
    """Input pixels, and a matrix with a row of their weights for each output pixel."""

    pixels: tuple[int, ...]
    weights: Vector


class Samples(NamedTuple):
    """Input pixels, and their weights, that make up the output pixels along an axis."""

    taps: list[ResizeTap]
    inside: Vector
    """Vector with 1 for output pixels with coordinates in the input, and 0 for all others."""
    matrix: WeightMatrix | None = None
    """Pixels and weights in place of `taps`, if the width of the filter is known only at run time."""

    def is_all_inside(self) -> bool:
        """Return whether every coordinate is known to be inside of the input."""
        return self.inside.numbers is not None and all(self.inside.numbers)


def sample_axis(axis: ResizeAxis, sampling: Sampling, out: Rewriter) -> Samples:
    """Return the input pixels and weights of every output pixel."""
    last = axis.size - 1
    if axis.length.numbers is not None:
        length, taps = int(axis.length.numbers[0]), _tap_count(axis, sampling)
        if sampling.antialias:
            require_at_most(length * taps, MAX_WEIGHTS, "weights", out.workspace)
        else:  # each pixel that a filter reads has an index and a weight
            out.require_elements(2 * length, taps)
    index = axis.length.indices(out)
    coordinate = _COORDINATES[sampling.coordinates](axis, index)
    if coordinate.numbers is not None and index.numbers is not None:
        coordinate = Vector(tuple(repeat_to_length(coordinate.numbers, len(index.numbers))))
    inside = ONE
    if sampling.coordinates == "tf_crop_and_resize":
        inside = 1 - coordinate.less_than(0).apply("Max", last.less_than(coordinate))
        coordinate = _bound_coordinate(coordinate, last)
    if sampling.mode == "nearest":
        is_truncated = sampling.rounding == "floor" and sampling.coordinates in ABOVE_MINUS_ONE
        if coordinate.numbers is None and is_truncated:
            # The Cast to int64 truncates: it rounds numbers above 0 down, and those from -1 to 0 up to 0.
            return Samples([ResizeTap(coordinate.at_most(last))], inside)
        pixel = _ROUNDINGS[sampling.rounding](coordinate, axis).clip(last)
        return Samples([ResizeTap(pixel)], inside)
    if sampling.antialias and axis.scale.numbers is None:
        return Samples([], inside, _weight_matrix(coordinate, axis, sampling, out))
    if sampling.antialias:
        return Samples(_antialiased(coordinate, axis, sampling), inside)
    if sampling.mode == "linear":
        return Samples(_linear_taps(coordinate, last), inside)
    return Samples(_cubic_taps(coordinate, axis, sampling), inside)


def _bound_coordinate(coordinate: Vector, last: Vector) -> Vector:
    """Clamp coordinates of a computed region, which may end far outside of the input, for `at_most`."""
    if _has_broadcasting_min(coordinate.content):
        return coordinate
    return coordinate.apply("Relu").apply("Min", last)


def _tap_count(axis: ResizeAxis, sampling: Sampling) -> int:
    """Return a lower bound of the number of input pixels that each output pixel reads."""
    width = {"nearest": 1, "linear": 2}.get(sampling.mode, 4)
    scale = min((*(axis.scale.numbers or ()), 1.0))
    return math.ceil(width / scale) if sampling.antialias and scale > 0 else width


def is_unchanged(axis: ResizeAxis, sampling: Sampling) -> bool:
    """Return whether an axis is known to keep its size and its pixels."""
    if axis.size.numbers is None or axis.length.numbers != axis.size.numbers:
        return False
    if axis.size.numbers == (1.0,):
        return True
    if sampling.coordinates == "tf_crop_and_resize":
        return (axis.start.numbers, axis.end.numbers) == ((0.0,), (1.0,))
    return axis.scale.numbers == (1.0,)


def has_same_samples(
    axes: Mapping[int, ResizeAxis], sampling: Sampling, other: Sampling, out: Rewriter
) -> bool:
    """Return whether two sampling methods yield the same pixels; all sizes must be known."""
    return all(
        (is_unchanged(axis, sampling) and is_unchanged(axis, other))
        or _is_same(sample_axis(axis, sampling, out), sample_axis(axis, other, out))
        for axis in axes.values()
    )


def _is_same(first: Samples, second: Samples) -> bool:
    if len(first.taps) != len(second.taps) or not (first.is_all_inside() and second.is_all_inside()):
        return False
    return all(
        one.pixel.numbers == other.pixel.numbers and _is_close(one.weight - other.weight)
        for one, other in zip(first.taps, second.taps, strict=True)
    )


def _is_close(difference: Vector) -> bool:
    return difference.numbers is not None and all(abs(each) <= 1e-6 for each in difference.numbers)


def _antialiased(coordinate: Vector, axis: ResizeAxis, sampling: Sampling) -> list[ResizeTap]:
    """Return the taps of a filter that widens if the image shrinks; outer pixels are clamped or excluded."""
    shrinkage = axis.scale.apply("Min", 1)
    assert shrinkage.numbers is not None, "a filter of computed width has a weight matrix"
    reach = math.ceil(filter_width(sampling) / shrinkage.numbers[0])
    lower = coordinate.apply("Floor")
    pixels = [lower + offset for offset in range(1 - reach, reach + 1)]
    taps = [ResizeTap(each, filter_weight(each, coordinate, shrinkage, sampling)) for each in pixels]
    if sampling.exclude_outside:
        taps = _mask_outside(taps, axis)
    last = axis.size - 1
    return [ResizeTap(pixel.clip(last), weight) for pixel, weight in _normalize_weights(taps)]


def _weight_matrix(coordinate: Vector, axis: ResizeAxis, sampling: Sampling, out: Rewriter) -> WeightMatrix:
    """Return the weights of all pixels that a filter of computed width may reach.

    Raises:
        CannotConvert: the size of the axis is large.
    """
    assert axis.size.numbers is not None, "a filter of computed width needs an axis of known size"
    size = int(axis.size.numbers[0])
    margin = 0 if sampling.exclude_outside else filter_width(sampling) * size
    if size + 2 * margin > MAX_PIXELS:
        reason = "antialias is set and the scales are computed, so the width of the filter is unknown"
        remedy = "make scales or sizes an initializer that is not a graph input"
        raise CannotConvert(reason, UNKNOWN_CONSTANT, remedy=remedy)
    pixels = range(-margin, size + margin)
    column = computed_vector(coordinate.as_column(1, "float", out), out)
    shrinkage = axis.scale.apply("Min", 1)
    weights = filter_weight(Vector(tuple(map(float, pixels))), column, shrinkage, sampling)
    total = out.emit("ReduceSum", [weights.as_name()], axes=[1], keepdims=1)
    clamped = tuple(min(max(pixel, 0), size - 1) for pixel in pixels)
    return WeightMatrix(clamped, weights / computed_vector(total, out))


def _mask_outside(taps: list[ResizeTap], axis: ResizeAxis) -> list[ResizeTap]:
    """Clamp pixels to the input, and set the weights of clamped pixels to 0."""
    last = axis.size - 1
    masked = []
    for pixel, weight in taps:
        clamped = pixel.clip(last)
        masked.append(ResizeTap(clamped, weight * abs(pixel - clamped).less_than(0.5)))
    return masked


def _normalize_weights(taps: list[ResizeTap]) -> list[ResizeTap]:
    total = sum((tap.weight for tap in taps), start=ZERO)
    return [ResizeTap(pixel, weight / total) for pixel, weight in taps]


def _linear_taps(coordinate: Vector, last: Vector) -> list[ResizeTap]:
    coordinate = coordinate.clip(last)
    lower = coordinate.apply("Floor")
    fraction = coordinate - lower
    upper = (lower + 1).at_most(last)
    return [ResizeTap(lower, 1 - fraction), ResizeTap(upper, fraction)]


def _cubic_taps(coordinate: Vector, axis: ResizeAxis, sampling: Sampling) -> list[ResizeTap]:
    """Return the taps of Keys' cubic convolution over four pixels."""
    lower = coordinate.apply("Floor")
    fraction = coordinate - lower
    taps = []
    for offset in (-1, 0, 1, 2):
        weight = cubic_weight(abs(fraction - offset), sampling.cubic_coeff_a, inner=offset in (0, 1))
        taps.append(ResizeTap(lower + offset, weight))
    if sampling.exclude_outside:
        return _normalize_weights(_mask_outside(taps, axis))
    last = axis.size - 1
    return [ResizeTap(pixel.clip(last), weight) for pixel, weight in taps]


def _half_pixel(axis: ResizeAxis, index: Vector) -> Vector:
    return (index + 0.5) / axis.scale - 0.5


def _pytorch_half_pixel(axis: ResizeAxis, index: Vector) -> Vector:
    return _has_one_pixel(axis).select(ZERO, _half_pixel(axis, index))


def _half_pixel_symmetric(axis: ResizeAxis, index: Vector) -> Vector:
    adjustment = axis.length / (axis.scale * axis.size)
    offset = axis.size / 2 * (1 - adjustment)
    terms = [each.numbers for each in (offset, index, axis.scale) if each.numbers is not None]
    if len(terms) == 3:
        # Runtimes compute this sum in double.
        return Vector(elementwise(lambda first, i, scale: first + (i + 0.5) / scale - 0.5, *terms))
    return offset + (index + 0.5) / axis.scale - 0.5


def _align_corners(axis: ResizeAxis, index: Vector) -> Vector:
    return index * (axis.size - 1) / _intervals(axis)


def _crop_and_resize(axis: ResizeAxis, index: Vector) -> Vector:
    last = axis.size - 1
    offset = index * (axis.end - axis.start) * last / _intervals(axis)
    center = 0.5 * (axis.start + axis.end) * last
    coordinate = axis.start * last + offset
    return _has_one_pixel(axis).select(center, coordinate)


def _intervals(axis: ResizeAxis) -> Vector:
    """Return the number of intervals between output pixels, a divisor, and therefore at least 1."""
    return (axis.length - 1).at_least_one()


def _has_one_pixel(axis: ResizeAxis) -> Vector:
    return axis.length.less_than(1.5)


def _round_half_down(coordinate: Vector, _: ResizeAxis) -> Vector:
    lower = coordinate.apply("Floor")
    return lower + Vector((0.5 + TIE_TOLERANCE,)).less_than(coordinate - lower)


def _round_half_up(coordinate: Vector, _: ResizeAxis) -> Vector:
    lower = coordinate.apply("Floor")
    is_lower = (coordinate - lower).less_than(0.5 - TIE_TOLERANCE)
    return lower + 1 - is_lower


def _round_by_direction(coordinate: Vector, axis: ResizeAxis) -> Vector:
    """Round up if the axis shrinks, else down, as runtimes do for version 10."""
    shrinks = axis.scale.less_than(1)
    return shrinks.select(coordinate.apply("Ceil"), coordinate.apply("Floor"))


ABOVE_MINUS_ONE = ("asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners", "tf_half_pixel_for_nn")
"""Coordinate modes whose coordinates are greater than -1."""

_COORDINATES: dict[str, Callable[[ResizeAxis, Vector], Vector]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "tf_half_pixel_for_nn": lambda axis, index: (index + 0.5) / axis.scale,
    "asymmetric": lambda axis, index: index / axis.scale,
    "align_corners": _align_corners,
    "tf_crop_and_resize": _crop_and_resize,
}

_ROUNDINGS: dict[str, Callable[[Vector, ResizeAxis], Vector]] = {
    "round_prefer_floor": _round_half_down,
    "round_prefer_ceil": _round_half_up,
    "floor": lambda coordinate, _: coordinate.apply("Floor"),
    "ceil": lambda coordinate, _: coordinate.apply("Ceil"),
    "by_direction": _round_by_direction,
}
