"""Float32 arithmetic that rounds like a kernel: numbers where operands are known, nodes otherwise."""

import operator
from collections.abc import Callable, Mapping, Sequence

from opshift.adapters import Rewriter
from opshift.adapters.emit.expression import Arithmetic
from opshift.adapters.emit.quantization import as_scalar
from opshift.model.element_types import round_to_float32

OPERATIONS: Mapping[str, Callable[[float, float], float]] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv,
}  # fmt: skip


class Float32(Arithmetic[float | str]):
    """A float32 number, or the name of a float32 value."""

    __slots__ = ("_out",)

    def __init__(self, content: float | str, out: Rewriter) -> None:
        super().__init__(content)
        self._out = out

    @property
    def name(self) -> str:
        """The name of the value; a number becomes a constant."""
        return self._named(self.content, "float")

    def multiply_add(self, factor: "Float32", addend: "Float32") -> "Float32":
        """Return the product plus the addend, rounded once like a fused multiply-add."""
        operands = self.content, factor.content, addend.content
        if not any(isinstance(each, str) for each in operands):
            first, second, third = map(float, operands)
            return Float32(round_to_float32(first * second + third), self._out)
        # The product of two float32 numbers is exact in double.
        first_name, second_name, third_name = (self._named(each, "double") for each in operands)
        product = self._out.emit("Mul", [first_name, second_name])
        return Float32(self._out.cast(self._out.emit("Add", [product, third_name]), "float"), self._out)

    def _named(self, content: float | str, element_type: str) -> str:
        if not isinstance(content, str):
            return self._out.constant(content, element_type)
        return content if element_type == "float" else self._out.cast(content, element_type)

    def _emit(self, op_type: str, operands: Sequence[float | str], opset: int | None) -> float | str:
        first, second = operands
        if isinstance(first, str) or isinstance(second, str) or (op_type == "Div" and not second):
            return self._out.emit(op_type, [self._named(each, "float") for each in operands], opset=opset)
        return round_to_float32(OPERATIONS[op_type](first, second))

    def _with(self, content: float | str) -> "Float32":
        return Float32(content, self._out)


def float32_scalar(name: str, out: Rewriter) -> Float32:
    """Return a value of one element, of any type, as a float32 scalar; 0 if it is omitted."""
    constant = out.constant_value(name) if name else None
    if not name or (constant and len(constant.values) == 1):
        return Float32(float(constant.scalar) if constant else 0.0, out)
    return Float32(out.cast(as_scalar(name, out), "float"), out)
