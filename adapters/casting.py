"""Cast: `to` was a type's name until 6 made it the type's number."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME


@adapter("Cast", 1, 6)
def name_becomes_number(node: Node, out: Rewriter) -> None:
    """`FLOAT` is 1, and so on for every TensorProto.DataType."""
    stated = node.attribute("to")
    name = stated.decode() if isinstance(stated, bytes) else str(stated)
    if name.lower() not in BY_NAME:
        raise CannotConvert(f"to is {name!r}, which names no element type", remedy="name one such as FLOAT")
    out.become(node, attributes={"to": BY_NAME[name.lower()].number})
