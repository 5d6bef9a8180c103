"""Sinh, Cosh, Asinh, Acosh, Atanh and Erf before opset 9, as formulas of Exp and Log with other rounding."""

from __future__ import annotations

from collections.abc import Callable

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.adapters.emit.cast import cast
from opshift.model.node import Node

INVERSE_REASON = "near zero the logarithm loses digits that {} keeps"
"""Reason why an inverse function is approximate; takes the operator."""


@adapter("Sinh", 9, 8)
def expand_sinh(node: Node, out: Rewriter) -> None:
    """Rewrite as `(e^x - e^-x) / 2`."""
    out.allow("approximate", "near zero the difference of two exponentials loses digits that Sinh keeps")
    _emit_formula(node, lambda formula: formula.half(formula.apply("Sub", *formula.exponentials())), out)


@adapter("Cosh", 9, 8)
def expand_cosh(node: Node, out: Rewriter) -> None:
    """Rewrite as `(e^x + e^-x) / 2`."""
    out.allow("approximate", "the exponentials overflow at slightly smaller inputs than Cosh")
    _emit_formula(node, lambda formula: formula.half(formula.apply("Add", *formula.exponentials())), out)


@adapter("Asinh", 9, 8)
def expand_asinh(node: Node, out: Rewriter) -> None:
    """Rewrite as `log(|x| + sqrt(x^2 + 1))`, with the sign of `x`."""
    out.allow("approximate", INVERSE_REASON.format("Asinh"))

    def inverse(formula: _Formula) -> str:
        magnitude = formula.apply("Abs", formula.x)
        root = formula.apply(
            "Sqrt", formula.apply("Add", formula.apply("Mul", formula.x, formula.x), formula.constant(1))
        )
        return formula.with_sign_of_x(formula.apply("Log", formula.apply("Add", magnitude, root)))

    _emit_formula(node, inverse, out)


@adapter("Acosh", 9, 8)
def expand_acosh(node: Node, out: Rewriter) -> None:
    """Rewrite as `log(x + sqrt((x - 1)(x + 1)))`."""
    out.allow("approximate", "near one the logarithm loses digits that Acosh keeps")

    def inverse(formula: _Formula) -> str:
        # Near one, (x - 1)(x + 1) loses fewer digits than x^2 - 1.
        inner = formula.apply(
            "Mul",
            formula.apply("Sub", formula.x, formula.constant(1)),
            formula.apply("Add", formula.x, formula.constant(1)),
        )
        return formula.apply("Log", formula.apply("Add", formula.x, formula.apply("Sqrt", inner)))

    _emit_formula(node, inverse, out)


@adapter("Atanh", 9, 8)
def expand_atanh(node: Node, out: Rewriter) -> None:
    """Rewrite as `log((1 + x) / (1 - x)) / 2`."""
    out.allow("approximate", INVERSE_REASON.format("Atanh"))

    def inverse(formula: _Formula) -> str:
        quotient = formula.apply(
            "Div",
            formula.apply("Add", formula.constant(1), formula.x),
            formula.apply("Sub", formula.constant(1), formula.x),
        )
        return formula.half(formula.apply("Log", quotient))

    _emit_formula(node, inverse, out)


ERF_COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""Polynomial with an error of at most 1.5e-7 (Abramowitz and Stegun 7.1.26), highest power first."""


@adapter("Erf", 9, 8)
def expand_erf(node: Node, out: Rewriter) -> None:
    """Rewrite as `1 - p(1 / (1 + 0.3275911 |x|)) e^(-x^2)`, with the sign of `x`."""
    out.allow("approximate", "Erf is approximated by a polynomial with an error of up to 1.5e-7")

    def polynomial(formula: _Formula) -> str:
        scaled = formula.apply("Mul", formula.apply("Abs", formula.x), formula.constant(0.3275911))
        t = formula.apply("Div", formula.constant(1), formula.apply("Add", formula.constant(1), scaled))
        total = formula.constant(0)
        for coefficient in ERF_COEFFICIENTS:
            total = formula.apply("Mul", formula.apply("Add", total, formula.constant(coefficient)), t)
        decay = formula.apply("Exp", formula.apply("Neg", formula.apply("Mul", formula.x, formula.x)))
        return formula.with_sign_of_x(
            formula.apply("Sub", formula.constant(1), formula.apply("Mul", total, decay))
        )

    _emit_formula(node, polynomial, out)


class _Formula:
    """Emits the operators of a formula with one input."""

    def __init__(self, x: str, element_type: str, out: Rewriter) -> None:
        self.x, self._element_type, self._out = x, element_type, out

    def apply(self, op_type: str, *inputs: str) -> str:
        """Emit one operator and return its result."""
        return self._out.emit(op_type, inputs)

    def constant(self, value: float) -> str:
        """Return a constant."""
        return self._out.constant(float(value), self._element_type)

    def half(self, value: str) -> str:
        """Return half of a value."""
        return self.apply("Mul", value, self.constant(0.5))

    def exponentials(self) -> tuple[str, str]:
        """Return e^x and e^-x."""
        return self.apply("Exp", self.x), self.apply("Exp", self.apply("Neg", self.x))

    def with_sign_of_x(self, value: str) -> str:
        """Return a nonnegative value with the sign of x."""
        return self.apply("Mul", value, self._out.emit("Sign", [self.x], opset=9))


def _emit_formula(node: Node, build: Callable[[_Formula], str], out: Rewriter) -> None:
    """Emit a formula; float16 and bfloat16 are computed in float."""
    element_type = out.element_type(node.inputs[0])
    compute_type = "double" if element_type == "double" else "float"
    value = node.inputs[0] if compute_type == element_type else cast(node.inputs[0], compute_type, out)
    result = build(_Formula(value, compute_type, out))
    cast(result, element_type, out, node.outputs)
