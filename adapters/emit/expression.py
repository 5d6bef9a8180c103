"""Emit nodes for formulas in Python syntax, such as `x * x + 1`, and emit casts."""

import sys
from collections.abc import Iterable, Sequence
from typing import Generic, Self, TypeVar

from opshift.adapters import Node, Rewriter
from opshift.adapters.core.rewriter import rename_output
from opshift.model.element_types import FLOAT_MAX

Content = TypeVar("Content")


class Arithmetic(Generic[Content]):
    """A value with arithmetic operators: `x * x + 1` calls `emit` for Mul and for Add."""

    __slots__ = ("content",)

    def __init__(self, content: Content) -> None:
        self.content = content

    def emit(self, op_type: str, *operands: Self | float, opset: int | None = None) -> Self:
        """Return the result of an operator applied to values and numbers."""
        contents = [each.content if isinstance(each, Arithmetic) else each for each in operands]
        return self._with(self._emit(op_type, contents, opset))

    def _emit(self, op_type: str, operands: Sequence[Content | float], opset: int | None) -> Content:
        raise NotImplementedError

    def _with(self, content: Content) -> Self:
        raise NotImplementedError

    def apply(self, op_type: str, *others: Self | float, opset: int | None = None) -> Self:
        """Apply an operator with this value as its first input."""
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


class Expression(Arithmetic[str]):
    """The name of a value; each arithmetic operator on the expression emits a node.

    Numbers become constants of the element type of the value: scalars, unless `rank` is 1.
    """

    __slots__ = ("_element_type", "_out", "_rank")

    def __init__(self, name: str, element_type: str, out: Rewriter, rank: int | None = None) -> None:
        super().__init__(name)
        self._element_type, self._out, self._rank = element_type, out, rank

    @property
    def name(self) -> str:
        """The name of the value."""
        return self.content

    @property
    def default_opset(self) -> int:
        """The target opset of the default domain."""
        return self._out.default_opset

    def constant(self, numbers: float | Sequence[float]) -> Self:
        """Return a constant of the same element type: 1-D for a sequence or if `rank` is 1, else a scalar."""
        if isinstance(numbers, int) and "int" not in self._element_type:
            numbers = float(numbers)
        return self._with(self._out.constant(numbers, self._element_type, self._rank))

    def cast(self, element_type: str) -> Self:
        """Emit a Cast to an element type."""
        return type(self)(self._out.cast(self.name, element_type), element_type, self._out, self._rank)

    def _emit(self, op_type: str, operands: Sequence[str | float], opset: int | None) -> str:
        names = [each if isinstance(each, str) else self.constant(each).name for each in operands]
        return self._out.emit(op_type, names, opset=opset)

    def _with(self, content: str) -> Self:
        return type(self)(content, self._element_type, self._out, self._rank)


def square(value: str, element_type: str, out: Rewriter) -> str:
    """Emit a square as Pow instead of Mul, because runtimes recognize Pow in normalizations."""
    return out.emit("Pow", [value, out.constant(2.0, element_type)])


def fold(op_type: str, values: Iterable[str], out: Rewriter) -> str:
    """Combine values from left to right with a binary operator; return `""` if there are no values.

    A generator is consumed lazily, so each value can be emitted right before it is combined.
    """
    total = ""
    for value in values:
        total = out.emit(op_type, [total, value]) if total else value
    return total


CAST_OPSET = 13
"""Opset of the emitted Cast nodes: the first with bfloat16, so that steps to older opsets refuse bfloat16."""

FLOAT_TYPES = ("float16", "bfloat16", "float", "double")

IEEE_FLOAT_TYPES = ("float16", "float", "double")
"""Floating-point types of older operator versions, which do not support bfloat16."""

LARGEST_FINITE = {
    "float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float": FLOAT_MAX, "double": sys.float_info.max,
}  # fmt: skip
"""Largest finite number of each floating-point type; the lowest finite number is its negation."""

ARITHMETIC_TYPES = {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
"""Integer types to wider types: before opset 14, Add, Sub, Mul and Div require 32-bit or 64-bit integers."""


def cast(value: str, element_type: str, out: Rewriter, outputs: int | Sequence[str] = 1) -> str:
    """Emit a Cast for `CAST_OPSET` and return its output; `outputs` may contain the name of the output."""
    return out.cast(value, element_type, outputs, opset=CAST_OPSET)


def cast_between(value: str, source: str, target: str, out: Rewriter) -> str:
    """Return `value` cast from `source` to `target`, or `value` itself if both element types are equal."""
    return value if source == target else cast(value, target, out)


def cast_output(value: str, source: str, target: str, node: Node, out: Rewriter) -> None:
    """Cast `value` to the output of a node; if both types are equal, rename `value` to the output."""
    if source == target:
        rename_output(value, node, out)
    else:
        cast(value, target, out, node.outputs)
