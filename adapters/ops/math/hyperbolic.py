"""Sinh, Cosh, Asinh, Acosh, Atanh and Erf before opset 9, as formulas of Exp and Log with other rounding."""

from __future__ import annotations

from collections.abc import Callable

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.cast import cast
from opshift.adapters.emit.expression import Expression

INVERSE_REASON = "near zero the logarithm loses digits that {} keeps"
"""Reason why an inverse function is approximate; takes the operator."""

ERF_COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""Polynomial with an error of at most 1.5e-7 (Abramowitz and Stegun 7.1.26), highest power first."""


@adapter("Sinh", 9, 8)
def expand_sinh(node: Node, out: Rewriter) -> None:
    """Rewrite as `(e^x - e^-x) / 2`."""
    out.allow("approximate", "near zero the difference of two exponentials loses digits that Sinh keeps")
    _emit_formula(node, lambda x: (x.apply("Exp") - (-x).apply("Exp")) * 0.5, out)


def _emit_formula(node: Node, formula: Callable[[Expression], Expression], out: Rewriter) -> None:
    """Emit a formula of the input; float16 and bfloat16 are computed in float."""
    element_type = out.element_type(node.inputs[0])
    compute_type = "double" if element_type == "double" else "float"
    value = node.inputs[0] if compute_type == element_type else cast(node.inputs[0], compute_type, out)
    cast(formula(Expression(value, compute_type, out)).name, element_type, out, node.outputs)


@adapter("Cosh", 9, 8)
def expand_cosh(node: Node, out: Rewriter) -> None:
    """Rewrite as `(e^x + e^-x) / 2`."""
    out.allow("approximate", "the exponentials overflow at slightly smaller inputs than Cosh")
    _emit_formula(node, lambda x: (x.apply("Exp") + (-x).apply("Exp")) * 0.5, out)


@adapter("Asinh", 9, 8)
def expand_asinh(node: Node, out: Rewriter) -> None:
    """Rewrite as `log(|x| + sqrt(x^2 + 1))`, with the sign of `x`."""
    out.allow("approximate", INVERSE_REASON.format("Asinh"))
    _emit_formula(node, lambda x: _with_sign(x, (abs(x) + (x * x + 1).apply("Sqrt")).apply("Log")), out)


def _with_sign(x: Expression, magnitude: Expression) -> Expression:
    """Return a nonnegative value with the sign of x."""
    return magnitude * x.apply("Sign", opset=9)


@adapter("Acosh", 9, 8)
def expand_acosh(node: Node, out: Rewriter) -> None:
    """Rewrite as `log(x + sqrt((x - 1)(x + 1)))`."""
    out.allow("approximate", "near one the logarithm loses digits that Acosh keeps")
    # Near one, (x - 1)(x + 1) loses fewer digits than x^2 - 1.
    _emit_formula(node, lambda x: (x + ((x - 1) * (x + 1)).apply("Sqrt")).apply("Log"), out)


@adapter("Atanh", 9, 8)
def expand_atanh(node: Node, out: Rewriter) -> None:
    """Rewrite as `log((1 + x) / (1 - x)) / 2`."""
    out.allow("approximate", INVERSE_REASON.format("Atanh"))
    _emit_formula(node, lambda x: ((1 + x) / (1 - x)).apply("Log") * 0.5, out)


@adapter("Erf", 9, 8)
def expand_erf(node: Node, out: Rewriter) -> None:
    """Rewrite as `1 - p(1 / (1 + 0.3275911 |x|)) e^(-x^2)`, with the sign of `x`."""
    out.allow("approximate", "Erf is approximated by a polynomial with an error of up to 1.5e-7")
    _emit_formula(node, _erf, out)


def _erf(x: Expression) -> Expression:
    t = 1 / (1 + abs(x) * 0.3275911)
    total = x.constant(0)
    for coefficient in ERF_COEFFICIENTS:
        total = (total + coefficient) * t
    return _with_sign(x, 1 - total * (-(x * x)).apply("Exp"))
