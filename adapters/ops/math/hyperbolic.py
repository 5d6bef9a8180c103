"""Sinh, Cosh, Asinh, Acosh, Atanh and Erf before opset 9, as formulas of Exp and Log with other rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.cast import cast, cast_between
from opshift.adapters.emit.expression import Expression

ERF_COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""Polynomial with an error of at most 1.5e-7 (Abramowitz and Stegun 7.1.26), highest power first."""


def _asinh(x: Expression) -> Expression:
    """Return `log(|x| + sqrt(x^2 + 1))`, with the sign of `x`."""
    return _with_sign(x, (abs(x) + (x * x + 1).apply("Sqrt")).apply("Log"))


def _with_sign(x: Expression, magnitude: Expression) -> Expression:
    return magnitude * x.apply("Sign", opset=9)


def _erf(x: Expression) -> Expression:
    """Return `1 - p(1 / (1 + 0.3275911 |x|)) e^(-x^2)`, with the sign of `x`."""
    t = 1 / (1 + abs(x) * 0.3275911)
    total = x.constant(0)
    for coefficient in ERF_COEFFICIENTS:
        total = (total + coefficient) * t
    return _with_sign(x, 1 - total * (-(x * x)).apply("Exp"))


class Formula(NamedTuple):
    """A formula of the input, and the reason why it is approximate."""

    compute: Callable[[Expression], Expression]
    reason: str


FORMULAS = {
    "Sinh": Formula(
        lambda x: (x.apply("Exp") - (-x).apply("Exp")) * 0.5,
        "near zero the difference of two exponentials loses digits that Sinh keeps",
    ),
    "Cosh": Formula(
        lambda x: (x.apply("Exp") + (-x).apply("Exp")) * 0.5,
        "the exponentials overflow at slightly smaller inputs than Cosh",
    ),
    "Asinh": Formula(_asinh, "near zero the logarithm loses digits that Asinh keeps"),
    # Near one, (x - 1)(x + 1) loses fewer digits than x^2 - 1.
    "Acosh": Formula(
        lambda x: (x + ((x - 1) * (x + 1)).apply("Sqrt")).apply("Log"),
        "near one the logarithm loses digits that Acosh keeps",
    ),
    "Atanh": Formula(
        lambda x: ((1 + x) / (1 - x)).apply("Log") * 0.5,
        "near zero the logarithm loses digits that Atanh keeps",
    ),
    "Erf": Formula(_erf, "Erf is approximated by a polynomial with an error of up to 1.5e-7"),
}


@adapter(tuple(FORMULAS), 9, 8)
def expand_formula(node: Node, out: Rewriter) -> None:
    """Emit the formula of the operator; float16 and bfloat16 are computed in float."""
    formula, element_type = FORMULAS[node.op_type], out.element_type(node.inputs[0])
    out.allow("approximate", formula.reason)
    compute_type = "double" if element_type == "double" else "float"
    x = Expression(cast_between(node.inputs[0], element_type, compute_type, out), compute_type, out)
    cast(formula.compute(x).name, element_type, out, node.outputs)
