"""IsInf (introduced in opset 10), IsNaN and Sign (both opset 9), expressed as comparisons."""

from __future__ import annotations

import math

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.cast import LARGEST_FINITE, cast

COMPARABLE_TYPES = ("float", "double")
"""Element types that comparisons support in every opset."""


@adapter("IsInf", 10, 9)
def detect_infinity_by_comparison(node: Node, out: Rewriter) -> None:
    """Compare with the largest finite number of the element type: only infinity exceeds it."""
    value, element_type = _comparable(node.inputs[0], out)
    largest = LARGEST_FINITE[element_type]
    # Nothing exceeds infinity, so an infinite limit disables the detection of that sign.
    upper_limit = largest if node.attribute("detect_positive", 1) else math.inf
    lower_limit = largest if node.attribute("detect_negative", 1) else math.inf
    is_above = out.emit("Greater", [value, out.constant(upper_limit, element_type)])
    is_below = out.emit("Less", [value, out.constant(-lower_limit, element_type)])
    out.emit("Or", [is_above, is_below], node.outputs)


def _comparable(name: str, out: Rewriter) -> tuple[str, str]:
    """Return the value in a type that comparisons support in every opset, and that type.

    Values of other types are cast to float, which keeps sign, infinity and NaN.
    """
    element_type = out.element_type(name)
    if element_type in COMPARABLE_TYPES:
        return name, element_type
    return cast(name, "float", out), "float"


@adapter("IsNaN", 9, 8)
def detect_nan_by_comparison(node: Node, out: Rewriter) -> None:
    """Test that a value is neither below infinity nor above zero, which is true only for NaN."""
    value, element_type = _comparable(node.inputs[0], out)
    is_below = out.emit("Less", [value, out.constant(math.inf, element_type)])
    is_above = out.emit("Greater", [value, out.constant(0.0, element_type)])
    out.emit("Not", [out.emit("Or", [is_below, is_above])], node.outputs)


@adapter("Sign", 9, 8)
def compute_sign_by_comparison(node: Node, out: Rewriter) -> None:
    """Subtract the test for values below zero from the test for values above zero."""
    value, element_type = _comparable(node.inputs[0], out)
    zero = out.constant(0.0, element_type)
    flags = [cast(out.emit(test, [value, zero]), "float", out) for test in ("Greater", "Less")]
    cast(out.emit("Sub", flags), out.element_type(node.inputs[0]), out, node.outputs)
