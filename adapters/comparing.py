"""Equal, Less, Greater: which types may be compared, integers from 9 on, floats with Equal from 11 on."""

from __future__ import annotations

from typing import NamedTuple

from opshift.adapters.casts import cast
from opshift.adapters.legal_types import require_types
from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

FLOATS = ("float16", "float", "double")


@adapter("Equal", 11, 7)
def equal_is_neither_less_nor_greater(node: Node, out: Rewriter) -> None:
    """Of floats, unless one is no number; 64 unsigned bits are compared as signed ones."""
    element_type = out.element_type(node.inputs[0])
    if element_type in FLOATS:
        less, greater = (out.emit(op_type, node.inputs) for op_type in ("Less", "Greater"))
        neither = out.emit("Not", [out.emit("Or", [less, greater])])
        first, second = (_is_number(name, element_type, out) for name in node.inputs)
        out.emit("And", [neither, out.emit("And", [first, second])], node.outputs)
    elif element_type == "uint64":
        signed = [out.emit("Cast", [name], to=BY_NAME["int64"].number) for name in node.inputs]
        out.become(node, inputs=signed)
    else:
        require_types(node, out)
        out.become(node)


def _is_number(name: str, element_type: str, out: Rewriter) -> str:
    """Every number is less than 1 or greater than 0; NaN is neither."""
    less = out.emit("Less", [name, out.constant(1.0, element_type)])
    return out.emit("Or", [less, out.emit("Greater", [name, out.constant(0.0, element_type)])])


class Halves(NamedTuple):
    """An integer of 64 bits as two that a double holds; the lower one has the integer's sign."""

    upper: str
    lower: str


@adapter(("Less", "Greater"), 9, 7)
def integers_are_compared_by_halves(node: Node, out: Rewriter) -> None:
    """A double holds every integer of fewer bits; of 64 the upper halves decide, else the lower ones."""
    element_type = out.element_type(node.inputs[0])
    if element_type not in ("int64", "uint64"):
        require_types(node, out)
        out.become(node)
        return
    first, second = (_halves(name, element_type, out) for name in node.inputs)
    upper = _compared(node.op_type, first.upper, second.upper, out)
    lower = _compared(node.op_type, first.lower, second.lower, out)
    same = out.emit("Equal", [first.upper, second.upper])
    out.emit("Or", [upper, out.emit("And", [same, lower])], node.outputs)


def _halves(name: str, element_type: str, out: Rewriter) -> Halves:
    value = name if element_type == "int64" else cast(name, "int64", out)
    width = out.constant(1 << 32, "int64")
    upper = out.emit("Div", [value, width])
    lower = out.emit("Sub", [value, out.emit("Mul", [upper, width])])
    if element_type == "uint64":
        # Of the upper half of the range the cast makes negative numbers, in the same order.
        wrapped = _compared("Less", value, out.constant(0, "int64"), out)
        upper = out.emit("Add", [upper, out.emit("Mul", [cast(wrapped, "int64", out), width])])
    return Halves(upper, lower)


def _compared(op_type: str, first: str, second: str, out: Rewriter) -> str:
    return out.emit(op_type, [cast(name, "double", out) for name in (first, second)])
