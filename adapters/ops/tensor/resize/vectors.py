"""Arithmetic on short vectors of float: computed directly for constants, by nodes for other values."""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Callable, Sequence

from opshift.adapters.core.rewriter import Rewriter
from opshift.model.node import Tensor

Vector = tuple[float, ...] | str
"""The numbers, or the name of a tensor of rank 1; a vector of length 1 broadcasts to any other."""

OPSET = 9
"""Opset of the emitted nodes."""


def round_to_float32(value: float) -> float:
    """Return the nearest float32 value."""
    return array("f", (value,))[0]


class Vectors:
    """Operations on vectors, each rounded to float32 as a runtime rounds it."""

    def __init__(self, out: Rewriter, rounding: Callable[[float], float] = round_to_float32) -> None:
        self._out = out
        self._rounded = rounding

    def in_double(self) -> Vectors:
        """Return the same operations, which keep double precision on constants."""
        return Vectors(self._out, float)

    def to_single(self, vector: Vector) -> Vector:
        """Round constants to float32."""
        return tuple(map(round_to_float32, vector)) if isinstance(vector, tuple) else vector

    def add(self, first: Vector, second: Vector) -> Vector:
        """Return the sum."""
        return self._both("Add", operator.add, first, second)

    def subtract(self, first: Vector, second: Vector) -> Vector:
        """Return the difference."""
        return self._both("Sub", operator.sub, first, second)

    def multiply(self, first: Vector, second: Vector) -> Vector:
        """Return the product."""
        return self._both("Mul", operator.mul, first, second)

    def divide(self, first: Vector, second: Vector) -> Vector:
        """Return the quotient."""
        return self._both("Div", _quotient, first, second)

    def minimum(self, first: Vector, second: Vector) -> Vector:
        """Return the elementwise minimum."""
        return self._both("Min", min, first, second)

    def maximum(self, first: Vector, second: Vector) -> Vector:
        """Return the elementwise maximum."""
        return self._both("Max", max, first, second)

    def floor(self, vector: Vector) -> Vector:
        """Round down."""
        return self._one("Floor", math.floor, vector)

    def ceil(self, vector: Vector) -> Vector:
        """Round up."""
        return self._one("Ceil", math.ceil, vector)

    def absolute(self, vector: Vector) -> Vector:
        """Return absolute values."""
        return self._one("Abs", abs, vector)

    def less_than(self, first: Vector, second: Vector) -> Vector:
        """Return 1 where the first is less than the second, else 0."""
        if isinstance(first, tuple) and isinstance(second, tuple):
            return self._both("Less", operator.lt, first, second)
        less = self._emit("Less", self.name(first), self.name(second))
        return self._out.cast(less, "float", opset=OPSET)

    def select(self, condition: Vector, yes: Vector, no: Vector) -> Vector:
        """Return `yes` where a condition of ones and zeros is 1, else `no`; both must be finite."""
        if isinstance(condition, tuple) and all(element == condition[0] for element in condition):
            return yes if condition[0] else no
        return self.add(no, self.multiply(condition, self.subtract(yes, no)))

    def clip(self, vector: Vector, low: Vector, high: Vector) -> Vector:
        """Clamp to two bounds."""
        return self.minimum(self.maximum(vector, low), high)

    def name(self, vector: Vector) -> str:
        """Return the name of a float tensor that holds the vector."""
        return vector if isinstance(vector, str) else self._out.constant(vector, "float")

    def as_int64(self, vector: Vector) -> str:
        """Return the name of an int64 tensor that holds the vector."""
        if isinstance(vector, tuple):
            return self._out.int64([int(number) for number in vector])
        return self._out.cast(vector, "int64", opset=OPSET)

    def as_column(self, vector: Vector, trailing: int, element_type: str) -> str:
        """Return the name of a tensor that holds the vector, with trailing dimensions of size one."""
        if isinstance(vector, tuple):
            return self._out.tensor(Tensor(element_type, (len(vector), *[1] * trailing), vector))
        if trailing:
            shape = self._out.int64([-1, *[1] * trailing])
            vector = self._emit("Reshape", vector, shape)
        if element_type == "float":
            return vector
        return self._out.cast(vector, element_type, opset=OPSET)

    def arange(self, length: Vector) -> Vector:
        """Return the integers from 0 up to, but excluding, the length."""
        if isinstance(length, tuple):
            return tuple(float(index) for index in range(int(length[0])))
        # Range was introduced in opset 11, so the positions of ones are listed instead.
        one = Tensor("float", (1,), (1.0,))
        ones = self._out.emit("ConstantOfShape", [self.as_int64(length)], opset=OPSET, value=one)
        indices = self._emit("NonZero", ones)
        flattened = self._emit("Reshape", indices, self._out.int64([-1]))
        return self._out.cast(flattened, "float", opset=OPSET)

    def _emit(self, op_type: str, *inputs: str) -> str:
        return self._out.emit(op_type, inputs, opset=OPSET)

    def _one(self, op_type: str, function: Callable[[float], float], vector: Vector) -> Vector:
        if isinstance(vector, tuple):
            return tuple(float(function(number)) for number in vector)
        return self._emit(op_type, vector)

    def _both(
        self, op_type: str, function: Callable[[float, float], float], first: Vector, second: Vector
    ) -> Vector:
        if isinstance(first, tuple) and isinstance(second, tuple):
            length = max(len(first), len(second)) if first and second else 0
            pairs = zip(repeat_to_length(first, length), repeat_to_length(second, length), strict=True)
            return tuple(self._rounded(function(one, other)) for one, other in pairs)
        return self._emit(op_type, self.name(first), self.name(second))


def _quotient(first: float, second: float) -> float:
    # Python raises on a division by zero; a runtime returns infinity or NaN.
    if second:
        return first / second
    return math.copysign(math.inf, first) if first else math.nan


def repeat_to_length(values: Sequence[float], length: int) -> Sequence[float]:
    """Repeat a single number `length` times; return other vectors unchanged."""
    return values if len(values) == length else list(values) * length
