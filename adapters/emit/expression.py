"""Emit formulas that are written with Python's arithmetic operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from opshift.adapters import Rewriter


class Arithmetic:
    """A value with arithmetic operators: `x * x + 1` calls `emit` for Mul and for Add."""

    __slots__ = ()

    def emit(self, op_type: str, *operands: Self | float, opset: int | None = None) -> Self:
        """Emit an operator with these inputs."""
        raise NotImplementedError

    def apply(self, op_type: str, *others: Self | float, opset: int | None = None) -> Self:
        """Emit an operator with this value as its first input."""
        return self.emit(op_type, self, *others, opset=opset)

    def __add__(self, other: Self | float) -> Self:
        return self.emit("Add", self, other)

    def __radd__(self, other: float) -> Self:
        return self.emit("Add", other, self)

    def __sub__(self, other: Self | float) -> Self:
        return self.emit("Sub", self, other)

    def __rsub__(self, other: float) -> Self:
        return self.emit("Sub", other, self)

    def __mul__(self, other: Self | float) -> Self:
        return self.emit("Mul", self, other)

    def __rmul__(self, other: float) -> Self:
        return self.emit("Mul", other, self)

    def __truediv__(self, other: Self | float) -> Self:
        return self.emit("Div", self, other)

    def __rtruediv__(self, other: float) -> Self:
        return self.emit("Div", other, self)

    def __neg__(self) -> Self:
        return self.emit("Neg", self)

    def __abs__(self) -> Self:
        return self.emit("Abs", self)


class Expression(Arithmetic):
    """A value that emits a node for each arithmetic operator.

    Numbers become constants of the element type of the value: scalars, unless `rank` is 1.

    Attributes:
        name: the name of the value.
    """

    __slots__ = ("_element_type", "_out", "_rank", "name")

    def __init__(self, name: str, element_type: str, out: Rewriter, rank: int | None = None) -> None:
        self.name, self._element_type, self._out, self._rank = name, element_type, out, rank

    def constant(self, numbers: float | Sequence[float]) -> Self:
        """Return a constant of the same element type, of rank 1 for a sequence."""
        if isinstance(numbers, int) and "int" not in self._element_type:
            numbers = float(numbers)
        return self._value(self._out.constant(numbers, self._element_type, self._rank))

    def cast(self, element_type: str) -> Self:
        """Emit a Cast to an element type."""
        return type(self)(self._out.cast(self.name, element_type), element_type, self._out, self._rank)

    def emit(self, op_type: str, *operands: Self | float, opset: int | None = None) -> Self:
        """Emit an operator; numbers become constants."""
        names = [each.name if isinstance(each, Expression) else self.constant(each).name for each in operands]
        return self._value(self._out.emit(op_type, names, opset=opset))

    def _value(self, name: str) -> Self:
        return type(self)(name, self._element_type, self._out, self._rank)


def fold(op_type: str, values: Iterable[str], out: Rewriter) -> str:
    """Combine values from left to right with a binary operator; return `""` if there are no values.

    A generator is consumed lazily, so each value can be emitted right before it is combined.
    """
    total = ""
    for value in values:
        total = out.emit(op_type, [total, value]) if total else value
    return total
