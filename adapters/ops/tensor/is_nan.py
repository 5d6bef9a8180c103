"""Adapters that express IsInf (introduced in opset 10), IsNaN and Sign (both opset 9) by comparisons."""

import math

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.expression import FLOAT_TYPES, LARGEST_FINITE, Expression, cast

COMPARABLE_TYPES = ("float", "double")
"""Element types that are compared directly; other types are cast to float first."""


@adapter("IsInf", 10, 9)
def detect_infinity_by_comparison(node: Node, out: Rewriter) -> None:
    """Compare with the largest finite number of the element type, which only infinity exceeds."""
    value, element_type = _comparable(node.inputs[0], out)
    largest = LARGEST_FINITE[element_type]
    # Nothing exceeds infinity: an infinite limit disables the detection of that sign.
    upper_limit = largest if node.attribute("detect_positive", 1) else math.inf
    lower_limit = largest if node.attribute("detect_negative", 1) else math.inf
    is_above, is_below = value.apply("Greater", upper_limit), value.apply("Less", -lower_limit)
    out.emit("Or", [is_above.name, is_below.name], node.outputs)


def _comparable(name: str, out: Rewriter) -> tuple[Expression, str]:
    """Return the value as float or double, and the type; a cast to float keeps sign, infinity and NaN."""
    element_type = out.element_type(name)
    if element_type not in COMPARABLE_TYPES:
        name, element_type = cast(name, "float", out), "float"
    return Expression(name, element_type, out), element_type


@adapter("IsNaN", 9, 8)
def detect_nan_by_comparison(node: Node, out: Rewriter) -> None:
    """Test that a value is neither below infinity nor above zero, which is true only for NaN."""
    value, _ = _comparable(node.inputs[0], out)
    is_below, is_above = value.apply("Less", math.inf), value.apply("Greater", 0)
    out.emit("Not", [is_below.apply("Or", is_above).name], node.outputs)


@adapter("Sign", 9, 8)
def compute_sign_by_comparison(node: Node, out: Rewriter) -> None:
    """Subtract the test for values below zero from the test for values above zero; NaN stays NaN."""
    value, _ = _comparable(node.inputs[0], out)
    is_above, is_below = value.apply("Greater", 0), value.apply("Less", 0)
    sign = out.emit("Sub", [cast(flag.name, "float", out) for flag in (is_above, is_below)])
    original_type = out.element_type(node.inputs[0])
    if original_type in FLOAT_TYPES:
        # The divisor is 1 for numbers, which are below infinity or above zero, and 0 for NaN: 0 / 0 is NaN.
        is_number = value.apply("Less", math.inf).apply("Or", is_above)
        sign = out.emit("Div", [sign, cast(is_number.name, "float", out)])
    cast(sign, original_type, out, node.outputs)
