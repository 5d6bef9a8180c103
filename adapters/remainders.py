"""Mod and Round: remainders and whole numbers, by Div and Floor before they came."""

from __future__ import annotations

from opshift.adapters.casts import FLOATS, WIDER, cast
from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Mod", 28, 13)
def remainder_of_floats_takes_the_sign_of_the_dividend(node: Node, out: Rewriter) -> None:
    """Floats took `fmod` 1 only; where its result has not the divisor's sign, the divisor is added once."""
    divisor = node.inputs[1]
    element_type = out.element_type(divisor)
    if element_type not in FLOATS or node.attribute("fmod", 0):
        out.become(node)
        return
    zero = out.constant(0.0, element_type)
    rest = out.fresh("rest")
    out.become(node, outputs=[rest], attributes={"fmod": 1})
    differ = out.emit("Xor", [out.emit("Less", [rest, zero]), out.emit("Less", [divisor, zero])])
    is_over = out.emit("And", [differ, out.emit("Not", [out.emit("Equal", [rest, zero])])])
    out.emit("Where", [is_over, out.emit("Add", [rest, divisor]), rest], node.outputs)


@adapter("Mod", 10, 9)
def remainder_of_a_quotient(node: Node, out: Rewriter) -> None:
    """Div cuts quotients of integers towards zero; with `fmod` 0 the remainder takes the divisor's sign."""
    element_type = out.element_type(node.inputs[0])
    if element_type in FLOATS:
        out.concede("approximate", "the remainder of floats is computed from a quotient, which is rounded")
    halves = dict.fromkeys(("float16", "bfloat16"), "float")
    wide = {**WIDER, **halves}.get(element_type, element_type)
    value, divisor = (name if wide == element_type else cast(name, wide, out) for name in node.inputs)
    quotient = out.emit("Div", [value, divisor])
    if wide in FLOATS:
        quotient = cast(cast(quotient, "int64", out), wide, out)
    rest = out.emit("Sub", [value, out.emit("Mul", [quotient, divisor])])
    if wide.startswith("int") and not node.attribute("fmod", 0):
        rest = _with_the_sign_of(divisor, rest, wide, out)
    if wide == element_type:
        out.emit("Identity", [rest], node.outputs)
    else:
        cast(rest, element_type, out, node.outputs)


def _with_the_sign_of(divisor: str, rest: str, element_type: str, out: Rewriter) -> str:
    """A rest on the other side of zero than the divisor is brought over by adding the divisor once."""
    # Floats keep the sign of every integer, and are all that Less compares before 9.
    zero = out.constant(0.0, "float")
    signs = [out.emit("Less", [cast(name, "float", out), zero], opset=7) for name in (rest, divisor)]
    is_none = out.emit("Not", [cast(rest, "bool", out)])
    is_same = out.emit("Or", [out.emit("Not", [out.emit("Xor", signs)]), is_none])
    over = cast(out.emit("Not", [is_same]), element_type, out)
    return out.emit("Add", [rest, out.emit("Mul", [over, divisor])])


@adapter("Round", 11, 10)
def halves_go_to_the_even_neighbour(node: Node, out: Rewriter) -> None:
    """Rounded down, and one more if the rest is above a half, or a half and the whole number is odd."""
    element_type = out.element_type(node.inputs[0])
    wide = "double" if element_type == "double" else "float"
    value = node.inputs[0] if wide == element_type else cast(node.inputs[0], wide, out)
    half = out.constant(0.5, wide)
    floor = out.emit("Floor", [value])
    rest = out.emit("Sub", [value, floor])
    even = out.emit("Mul", [out.emit("Floor", [out.emit("Mul", [floor, half])]), out.constant(2.0, wide)])
    is_odd = out.emit("Greater", [out.emit("Sub", [floor, even]), half])
    # Of an infinite value rest and oddness are NaN: nothing is above, and nothing is odd.
    at_least = out.emit("Not", [out.emit("Less", [rest, half])])
    goes_up = out.emit("Or", [out.emit("Greater", [rest, half]), out.emit("And", [at_least, is_odd])])
    outputs = node.outputs if wide == element_type else 1
    result = out.emit("Add", [floor, cast(goes_up, wide, out)], outputs)
    if wide != element_type:
        cast(result, element_type, out, node.outputs)
