"""Dropout: how inference is told, and what type the mask has."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME


@adapter("Dropout", 6, 7)
def inference_only(node: Node, out: Rewriter) -> None:
    """`is_test` 0 dropped elements at random; versions 7 to 11 never do."""
    if not node.attribute("is_test", 0):
        raise CannotConvert(
            "is_test is 0, so it drops elements at random; Dropout-7 only passes them on",
            remedy="set is_test to 1 if the model is for inference",
        )
    out.become(node, attributes=node.without("is_test"))


@adapter("Dropout", 7, 10)
def mask_is_boolean(node: Node, out: Rewriter) -> None:
    """The mask had the type of the data; from 10 on it is boolean."""
    mask = node.output(1)
    if not out.is_used(mask):
        out.become(node, outputs=node.outputs[:1])
        return
    element_type = out.element_type(node.inputs[0])
    boolean = out.fresh("mask")
    out.become(node, outputs=[node.outputs[0], boolean])
    out.emit("Cast", [boolean], [mask], to=BY_NAME[element_type].number)
