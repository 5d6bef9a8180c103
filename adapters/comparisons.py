"""GreaterOrEqual and LessOrEqual came at 12; before, each is said by two comparisons."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter(("GreaterOrEqual", "LessOrEqual"), 12, 11)
def or_equal_is_a_second_comparison(node: Node, out: Rewriter) -> None:
    """The opposite comparison, negated, would be true of NaN; greater or equal is not."""
    strict = out.emit(node.op_type.removesuffix("OrEqual"), node.inputs)
    equal = out.emit("Equal", node.inputs)
    out.emit("Or", [strict, equal], node.outputs)
