"""Split: where the sizes of the parts stand, and how their number is told."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Split", 1, 2)
def sizes_become_an_attribute(node: Node, out: Rewriter) -> None:
    """Version 1 took the sizes as an input, too, in the data's own type; version 2 as an attribute only."""
    sizes = node.input(1)
    attributes = {"axis": 0, **node.attributes}
    if sizes:
        attributes["split"] = tuple(map(int, out.require_constant(sizes, "input split").values))
    out.become(node, inputs=node.inputs[:1], attributes=attributes)


@adapter("Split", 13, 18)
def parts_are_counted(node: Node, out: Rewriter) -> None:
    """Without sizes, the number of outputs told the number of parts; from 18 on `num_outputs` does."""
    if node.input(1):
        out.become(node)
        return
    attributes = {**node.attributes, "num_outputs": len(node.outputs)}
    out.become(node, inputs=node.inputs[:1], attributes=attributes)
