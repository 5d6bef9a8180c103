"""Arithmetic on short vectors of float: computed directly for constants, by nodes for other values."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Self

from opshift.adapters import Rewriter, Tensor
from opshift.adapters.emit.expression import Arithmetic, Expression
from opshift.adapters.emit.shapes import index_range, reshape
from opshift.model.element_types import round_to_float32

OPSET = 9
"""Opset of the emitted nodes."""


Contents = tuple[float, ...] | Expression


class Vector(Arithmetic[Contents]):
    """A vector of float32: numbers if known, else a tensor; a length of 1 broadcasts to any other."""

    __slots__ = ()

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """The numbers, or `None` if they are computed."""
        return self.content if isinstance(self.content, tuple) else None

    def less_than(self, other: Self | float) -> Self:
        """Return 1 where the number is less than the other, else 0."""
        less = self.apply("Less", other)
        return less if isinstance(less.content, tuple) else self._with(less.content.cast("float"))

    def select(self, yes: Self, no: Self) -> Self:
        """Return `yes` where this vector of ones and zeros is 1, else `no`; both must be finite."""
        if self.numbers is not None and len(set(self.numbers)) == 1:
            return yes if self.numbers[0] else no
        return no + self * (yes - no)

    def clip(self, low: float, high: Self) -> Self:
        """Clamp to two bounds."""
        return self.apply("Max", low).apply("Min", high)

    def as_int64(self, out: Rewriter) -> str:
        """Return the name of an int64 tensor that holds the vector."""
        if isinstance(self.content, tuple):
            return out.int64(map(int, self.content))
        return self.content.cast("int64").name

    def as_column(self, trailing: int, element_type: str, out: Rewriter) -> str:
        """Return the name of a tensor that holds the vector, with trailing dimensions of size one."""
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
        """Return the integers from 0 up to, but excluding, the only number of this vector."""
        if isinstance(self.content, tuple):
            return Vector(tuple(map(float, range(int(self.content[0])))))
        return computed_vector(out.cast(index_range(self.as_int64(out), out), "float"), out)

    def _emit(self, op_type: str, operands: Sequence[Contents | float], opset: int | None) -> Contents:
        """Compute the numbers like a runtime, or emit the operator if an operand is computed."""
        contents = [each if isinstance(each, tuple | Expression) else (float(each),) for each in operands]
        known = [each for each in contents if isinstance(each, tuple)]
        if len(known) == len(contents):
            return elementwise(_FUNCTIONS[op_type], *known)
        scope = next(each for each in contents if isinstance(each, Expression))
        inputs = [scope.constant(each) if isinstance(each, tuple) else each for each in contents]
        return scope.emit(op_type, *inputs, opset=opset)

    def _with(self, content: Contents) -> Self:
        return type(self)(content)


def computed_vector(name: str, out: Rewriter) -> Vector:
    """Return a vector that is a float tensor of rank 1."""
    return Vector(Expression(name, "float", out))


def elementwise(function: Callable[..., float], *vectors: Sequence[float]) -> tuple[float, ...]:
    """Apply a function to the numbers at each position, and round each result to float32."""
    length = max(map(len, vectors)) if all(vectors) else 0
    rows = zip(*(repeat_to_length(each, length) for each in vectors), strict=True)
    return tuple(round_to_float32(function(*row)) for row in rows)


def repeat_to_length(values: Sequence[float], length: int) -> Sequence[float]:
    """Repeat a single number `length` times; return other vectors unchanged."""
    return values if len(values) == length else list(values) * length


def _quotient(first: float, second: float) -> float:
    # Python raises on a division by zero; a runtime returns infinity or NaN.
    if second:
        return first / second
    return math.copysign(math.inf, first) if first else math.nan


_FUNCTIONS: dict[str, Callable[..., float]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": _quotient,
    "Min": min,
    "Max": max,
    "Floor": math.floor,
    "Ceil": math.ceil,
    "Abs": math.fabs,
    "Less": operator.lt,
}
