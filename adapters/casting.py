"""Cast and CastLike: how the type is told."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME, BY_NUMBER


@adapter("Cast", 1, 6)
def name_becomes_number(node: Node, out: Rewriter) -> None:
    """`FLOAT` is 1, and so on for every TensorProto.DataType."""
    stated = node.attribute("to")
    name = stated.decode() if isinstance(stated, bytes) else str(stated)
    if name.lower() not in BY_NAME:
        raise CannotConvert(f"to is {name!r}, which names no element type", remedy="name one such as FLOAT")
    out.become(node, attributes={"to": BY_NAME[name.lower()].number})


@adapter("Cast", 6, 1)
def number_becomes_name(node: Node, out: Rewriter) -> None:
    """The names are those of TensorProto.DataType, in capitals."""
    name = BY_NUMBER[node.attribute("to")].name.upper()
    out.become(node, attributes={"to": name.encode()})


@adapter("CastLike", 15, 14)
def type_is_named(node: Node, out: Rewriter) -> None:
    """Cast names the type that CastLike takes from its second input."""
    like = out.element_type(node.inputs[1])
    out.become(node, op_type="Cast", inputs=node.inputs[:1], attributes={"to": BY_NAME[like].number})
