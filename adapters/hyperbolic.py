"""Sinh, Cosh, Asinh, Acosh, Atanh and Erf: by Exp and Log, which rounds differently near zero."""

from __future__ import annotations

from collections.abc import Callable

from opshift.adapters.casts import cast
from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

INVERSE = "near zero the logarithm loses digits that {} keeps"


@adapter("Sinh", 9, 8)
def half_the_difference(node: Node, out: Rewriter) -> None:
    """(e^x - e^-x) / 2."""
    out.concede("approximate", "near zero the difference of two exponentials loses digits that Sinh keeps")
    _apply(node, lambda at: at.half(at.do("Sub", *at.exponentials())), out)


@adapter("Cosh", 9, 8)
def half_the_sum(node: Node, out: Rewriter) -> None:
    """(e^x + e^-x) / 2."""
    out.concede("approximate", "the exponentials overflow a little before Cosh does")
    _apply(node, lambda at: at.half(at.do("Add", *at.exponentials())), out)


@adapter("Asinh", 9, 8)
def logarithm_of_both_legs(node: Node, out: Rewriter) -> None:
    """log(|x| + sqrt(x^2 + 1)), with the sign of x."""
    out.concede("approximate", INVERSE.format("Asinh"))

    def inverse(at: _Form) -> str:
        size = at.do("Abs", at.x)
        root = at.do("Sqrt", at.do("Add", at.do("Mul", at.x, at.x), at.number(1)))
        return at.signed(at.do("Log", at.do("Add", size, root)))

    _apply(node, inverse, out)


@adapter("Acosh", 9, 8)
def logarithm_of_a_leg_and_the_longest(node: Node, out: Rewriter) -> None:
    """log(x + sqrt((x - 1)(x + 1)))."""
    out.concede("approximate", "near one the logarithm loses digits that Acosh keeps")

    def inverse(at: _Form) -> str:
        inner = at.do("Mul", at.do("Sub", at.x, at.number(1)), at.do("Add", at.x, at.number(1)))
        return at.do("Log", at.do("Add", at.x, at.do("Sqrt", inner)))

    _apply(node, inverse, out)


@adapter("Atanh", 9, 8)
def half_the_logarithm_of_a_quotient(node: Node, out: Rewriter) -> None:
    """log((1 + x) / (1 - x)) / 2."""
    out.concede("approximate", INVERSE.format("Atanh"))

    def inverse(at: _Form) -> str:
        quotient = at.do("Div", at.do("Add", at.number(1), at.x), at.do("Sub", at.number(1), at.x))
        return at.half(at.do("Log", quotient))

    _apply(node, inverse, out)


COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""Of a polynomial that stays within 1.5e-7 of the function (Abramowitz and Stegun 7.1.26)."""


@adapter("Erf", 9, 8)
def polynomial_and_exponential(node: Node, out: Rewriter) -> None:
    """1 - p(1 / (1 + 0.3275911 |x|)) e^(-x^2), with the sign of x."""
    out.concede("approximate", "no operator of opset 8 gives Erf but by a polynomial, within 1.5e-7")

    def polynomial(at: _Form) -> str:
        scaled = at.do("Mul", at.do("Abs", at.x), at.number(0.3275911))
        t = at.do("Div", at.number(1), at.do("Add", at.number(1), scaled))
        total = at.number(0)
        for coefficient in COEFFICIENTS:
            total = at.do("Mul", at.do("Add", total, at.number(coefficient)), t)
        decay = at.do("Exp", at.do("Neg", at.do("Mul", at.x, at.x)))
        return at.signed(at.do("Sub", at.number(1), at.do("Mul", total, decay)))

    _apply(node, polynomial, out)


class _Form:
    """What formulas of one input are written in."""

    def __init__(self, x: str, element_type: str, out: Rewriter) -> None:
        self.x, self._element_type, self._out = x, element_type, out

    def do(self, op_type: str, *inputs: str) -> str:
        """One operator."""
        return self._out.emit(op_type, inputs)

    def number(self, value: float) -> str:
        """A constant."""
        return self._out.constant(float(value), self._element_type)

    def half(self, value: str) -> str:
        """The half of a value."""
        return self.do("Mul", value, self.number(0.5))

    def exponentials(self) -> tuple[str, str]:
        """e^x and e^-x."""
        return self.do("Exp", self.x), self.do("Exp", self.do("Neg", self.x))

    def signed(self, value: str) -> str:
        """A value of at least zero, with the sign of x."""
        return self.do("Mul", value, self._out.emit("Sign", [self.x], opset=9))


def _apply(node: Node, formula: Callable[[_Form], str], out: Rewriter) -> None:
    """Work it out, in single precision if the type has less."""
    element_type = out.element_type(node.inputs[0])
    wide = "double" if element_type == "double" else "float"
    value = node.inputs[0] if wide == element_type else cast(node.inputs[0], wide, out)
    result = formula(_Form(value, wide, out))
    cast(result, element_type, out, node.outputs)
