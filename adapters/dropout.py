"""Dropout: how inference is told, and what type the mask has."""

from __future__ import annotations

from opshift.adapters.legal_types import require_types
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


@adapter("Dropout", 12, 10)
def ratio_becomes_an_attribute(node: Node, out: Rewriter) -> None:
    """Dropout-10 knows inference only, where neither ratio nor seed matters; a mask in use is all true."""
    ratio = out.constant_value(node.input(1))
    training = out.constant_value(node.input(2))
    if node.input(2) and (training is None or training.scalar) and not (ratio and ratio.scalar == 0):
        raise CannotConvert(
            "training_mode is not known to be false; Dropout-10 never drops elements",
            remedy="leave training_mode out, or make it a constant false, if the model is for inference",
        )
    require_types(node.with_(inputs=node.inputs[:1], outputs=node.outputs[:1]), out)
    mask = node.output(1)
    stated = {"ratio": float(ratio.scalar)} if ratio else {}
    out.become(node, inputs=node.inputs[:1], outputs=node.outputs[:1], attributes=stated)
    if out.is_used(mask):
        number = out.emit("Cast", node.inputs[:1], to=BY_NAME["bool"].number)
        out.emit("Or", [number, out.emit("Not", [number])], [mask])


@adapter("Dropout", 10, 7)
def mask_has_the_type_of_the_data(node: Node, out: Rewriter) -> None:
    """A mask in use is cast to boolean, which it was from 10 on."""
    mask = node.output(1)
    if not out.is_used(mask):
        out.become(node, outputs=node.outputs[:1])
        return
    number = out.fresh("mask")
    out.become(node, outputs=[node.outputs[0], number])
    out.emit("Cast", [number], [mask], to=BY_NAME["bool"].number)


@adapter("Dropout", 7, 6)
def inference_is_told(node: Node, out: Rewriter) -> None:
    """`is_test` has to say what versions 7 to 11 do anyway."""
    out.become(node, attributes={**node.attributes, "is_test": 1})
