"""IsNaN, IsInf and Sign: comparisons tell the same, and are false for NaN."""

from __future__ import annotations

import math

from opshift.adapters.casts import cast
from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("IsInf", 10, 9)
def beyond_all_finite_numbers(node: Node, out: Rewriter) -> None:
    """Only infinity is above the largest number of its type; nothing is above infinity."""
    value, element_type = _compared(node.inputs[0], out)
    largest = LARGEST[element_type]
    above = largest if node.attribute("detect_positive", 1) else math.inf
    below = largest if node.attribute("detect_negative", 1) else math.inf
    is_above = out.emit("Greater", [value, out.constant(above, element_type)])
    is_below = out.emit("Less", [value, out.constant(-below, element_type)])
    out.emit("Or", [is_above, is_below], node.outputs)


@adapter("IsNaN", 9, 8)
def neither_below_nor_above(node: Node, out: Rewriter) -> None:
    """Every other number is below infinity or above zero."""
    value, element_type = _compared(node.inputs[0], out)
    is_below = out.emit("Less", [value, out.constant(math.inf, element_type)])
    is_above = out.emit("Greater", [value, out.constant(0.0, element_type)])
    out.emit("Not", [out.emit("Or", [is_below, is_above])], node.outputs)


@adapter("Sign", 9, 8)
def above_zero_less_below_zero(node: Node, out: Rewriter) -> None:
    """One where it is above zero, minus one where it is below."""
    value, element_type = _compared(node.inputs[0], out)
    zero = out.constant(0.0, element_type)
    sides = [cast(out.emit(test, [value, zero]), "float", out) for test in ("Greater", "Less")]
    cast(out.emit("Sub", sides), out.element_type(node.inputs[0]), out, node.outputs)


LARGEST = {"float": (2 - 2.0**-23) * 2.0**127, "double": (2 - 2.0**-52) * 2.0**1023}


def _compared(name: str, out: Rewriter) -> tuple[str, str]:
    """The value in a type that comparisons take in every opset, and that keeps its sign; and that type."""
    element_type = out.element_type(name)
    if element_type in LARGEST:
        return name, element_type
    return cast(name, "float", out), "float"
