"""What an adapter refuses by type: the step bridges by casts what it can, and leaves the rest to it."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter


def require_types(node: Node, out: Rewriter) -> None:
    """Refuse a node whose values have types that the target of the step does not take.

    Raises:
        CannotConvert: one has.
    """
    target = out.target
    assert target is not None, "an operator that leaves its set has no types to keep to"
    for formals, names in ((target.inputs, node.inputs), (target.outputs, node.outputs)):
        for name, formal in zip(names, formals, strict=False):
            known = out.known_element_type(name)
            spelled = known if known is None or "(" in known else f"tensor({known})"
            if spelled is not None and spelled not in target.types_of(formal):
                raise CannotConvert(
                    f"{name!r} is {spelled}, which {target.id} does not take",
                    remedy="cast around the node to a type it takes, if that keeps range and precision",
                )
