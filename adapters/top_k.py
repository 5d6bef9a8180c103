"""TopK: 10 made the count an input; 11 lets it take the smallest elements, and count axes from the back."""

from __future__ import annotations

from opshift.adapters.computed_axes import MASKS_CAME
from opshift.adapters.negative_axes import from_the_front
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

SIGNED = ("float", "double", "float16", "bfloat16")


@adapter("TopK", 11, 10)
def smallest_are_the_largest_negatives(node: Node, out: Rewriter) -> None:
    """The order of equal elements stays; without `sorted` any order is right, so that of version 10 is."""
    data, axis = node.inputs[0], node.attribute("axis", -1)
    attributes = {"axis": axis if axis == -1 else from_the_front(axis, data, out)}
    if node.attribute("largest", 1):
        out.become(node, attributes=attributes)
        return
    if out.element_type(data) not in SIGNED:
        raise CannotConvert(f"it takes the smallest of {out.element_type(data)}, which have no negatives")
    values = out.fresh("negatives")
    negative = out.emit("Neg", [data])
    out.become(
        node, inputs=[negative, node.inputs[1]], outputs=[values, *node.outputs[1:]], attributes=attributes
    )
    if node.outputs[0]:
        out.emit("Neg", [values], node.outputs[:1])


@adapter("TopK", 10, 1)
def count_becomes_an_attribute(node: Node, out: Rewriter) -> None:
    """A constant count is written out; for a computed one all elements are sorted, and the first taken."""
    data, count = node.inputs
    known = out.constant_value(count)
    axis = node.attribute("axis", -1)
    if known is not None:
        out.become(node, inputs=[data], attributes={**node.attributes, "k": known.scalar})
        return
    shape = out.shape(data)
    size = shape[axis] if shape is not None else None
    if shape is None or size is None or out.default_opset < MASKS_CAME:
        out.require_constant(count, "input K")
    everything = [out.fresh("sorted") for _ in node.outputs]
    out.become(node, inputs=[data], outputs=everything, attributes={**node.attributes, "k": size})
    bounds = [out.constant([0], "int64"), count, out.constant([axis % len(shape or ())], "int64")]
    for whole, part in zip(everything, node.outputs, strict=True):
        if part:
            out.emit("Slice", [whole, *bounds], [part], opset=10)
