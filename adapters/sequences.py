"""Identity: sequences as input (opset 14)."""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Identity", 14, 13)
def element_comes_and_goes(node: Node, out: Rewriter) -> None:
    """Copy a sequence by appending an empty tensor and erasing it; leave Identity of a tensor unchanged."""
    known_type = out.known_element_type(node.inputs[0]) or ""
    if not known_type.startswith("seq("):
        out.become(node)
        return
    element_type = known_type.removeprefix("seq(tensor(").removesuffix("))")
    empty = out.tensor(Tensor(element_type, (0,), ()))
    # Without a position, SequenceInsert appends and SequenceErase removes the last element.
    out.emit("SequenceErase", [out.emit("SequenceInsert", [node.inputs[0], empty])], node.outputs)
