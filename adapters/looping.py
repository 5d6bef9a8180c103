"""Loop: a loop may carry no value at all from 11 on."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Loop", 11, 1)
def one_value_is_carried(node: Node, out: Rewriter) -> None:
    """Version 1 wants at least one, and the body would have to pass it on."""
    if len(node.inputs) < 3:
        raise CannotConvert(
            "the loop carries no value, and Loop-1 wants one",
            remedy="let the loop carry a value that its body passes on",
        )
    out.become(node)
