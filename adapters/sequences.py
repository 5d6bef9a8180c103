"""Identity: sequences may be passed on from 14 on."""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Identity", 14, 13)
def element_comes_and_goes(node: Node, out: Rewriter) -> None:
    """A sequence stays the same if an element is put at its end and taken off again."""
    known = out.known_element_type(node.inputs[0]) or ""
    if not known.startswith("seq("):
        out.become(node)
        return
    element_type = known.removeprefix("seq(tensor(").removesuffix("))")
    empty = out.tensor(Tensor(element_type, (0,), ()))
    out.emit("SequenceErase", [out.emit("SequenceInsert", [node.inputs[0], empty])], node.outputs)
