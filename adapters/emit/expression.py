"""Emit formulas that are written with Python's arithmetic operators."""

from __future__ import annotations

from opshift.adapters.core.rewriter import Rewriter


class Expression:
    """A value that emits a node for each arithmetic operator: `x * x + 1` emits Mul and Add.

    Numbers become constants of the element type of the value, which must be floating point.

    Attributes:
        name: the name of the value.
    """

    __slots__ = ("_element_type", "_out", "name")

    def __init__(self, name: str, element_type: str, out: Rewriter) -> None:
        self.name, self._element_type, self._out = name, element_type, out

    def constant(self, number: float) -> Expression:
        """Return a constant of the same element type."""
        return Expression(
            self._out.constant(float(number), self._element_type), self._element_type, self._out
        )

    def apply(self, op_type: str, *others: Expression | float, opset: int | None = None) -> Expression:
        """Emit an operator with this value as its first input."""
        return self._emit(op_type, self, *others, opset=opset)

    def __add__(self, other: Expression | float) -> Expression:
        return self._emit("Add", self, other)

    def __radd__(self, other: float) -> Expression:
        return self._emit("Add", other, self)

    def __sub__(self, other: Expression | float) -> Expression:
        return self._emit("Sub", self, other)

    def __rsub__(self, other: float) -> Expression:
        return self._emit("Sub", other, self)

    def __mul__(self, other: Expression | float) -> Expression:
        return self._emit("Mul", self, other)

    def __truediv__(self, other: Expression | float) -> Expression:
        return self._emit("Div", self, other)

    def __rtruediv__(self, other: float) -> Expression:
        return self._emit("Div", other, self)

    def __neg__(self) -> Expression:
        return self._emit("Neg", self)

    def __abs__(self) -> Expression:
        return self._emit("Abs", self)

    def _emit(self, op_type: str, *operands: Expression | float, opset: int | None = None) -> Expression:
        names = [each.name if isinstance(each, Expression) else self.constant(each).name for each in operands]
        return Expression(self._out.emit(op_type, names, opset=opset), self._element_type, self._out)
