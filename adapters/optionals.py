"""OptionalHasElement and OptionalGetElement: plain values, and none at all, are accepted from 18 on."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("OptionalHasElement", 18, 15)
def plain_value_is_there(node: Node, out: Rewriter) -> None:
    """An input left out is not there, a tensor or sequence is."""
    if node.input(0) and _is_optional(node.input(0), out):
        out.become(node)
        return
    known = out.constant(bool(node.input(0)), "bool")
    out.emit("Identity", [known], node.outputs)


@adapter("OptionalGetElement", 18, 15)
def plain_value_is_passed_on(node: Node, out: Rewriter) -> None:
    """A tensor or sequence is what it holds."""
    if _is_optional(node.inputs[0], out):
        out.become(node)
        return
    out.emit("Identity", node.inputs, node.outputs, opset=16)


def _is_optional(name: str, out: Rewriter) -> bool:
    known = out.known_element_type(name)
    if known is None:
        raise CannotConvert(
            f"whether {name!r} is an optional value is not known",
            remedy=f"state it: add a value_info for {name!r}",
        )
    return known.startswith("optional(")
