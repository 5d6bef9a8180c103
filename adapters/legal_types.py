"""Refuse unsupported types in adapters, after casts to wider types have been tried."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter


def require_types(node: Node, out: Rewriter) -> None:
    """Refuse a node with a value of a type that the target version does not support.

    Raises:
        CannotConvert: a value has such a type.
    """
    target = out.target
    assert target is not None, "an operator without a target version has no types to check"
    for formals, names in ((target.inputs, node.inputs), (target.outputs, node.outputs)):
        for name, formal in zip(names, formals, strict=False):
            known = out.known_element_type(name)
            type_text = known if known is None or "(" in known else f"tensor({known})"
            if type_text is not None and type_text not in target.types_of(formal):
                raise CannotConvert(
                    f"{name!r} is {type_text}, which {target.id} does not support",
                    remedy="cast around the node to a supported type, if range and precision allow it",
                )
