"""Equal: floats and wider integers may be compared from 11 on."""

from __future__ import annotations

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
