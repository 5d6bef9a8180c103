"""TopK: 10 made the count an input; 11 lets it take the smallest elements, and count axes from the back."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.legal_types import require_types
from opshift.adapters.negative_axes import from_the_front
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME


@adapter("TopK", 11, 10)
def smallest_are_the_largest_negatives(node: Node, out: Rewriter) -> None:
    """The order of equal elements stays; without `sorted` any order is right, so that of version 10 is."""
    data, axis = node.inputs[0], node.attribute("axis", -1)
    shape = out.shape(data)
    if out.known_element_type(data) in ("int64", "uint64") and shape is not None and shape[axis] is not None:
        _order_by_halves(node, axis % len(shape), shape[axis] or 0, out)
        return
    require_types(node, out)
    attributes = {"axis": axis if axis == -1 else from_the_front(axis, data, out)}
    if node.attribute("largest", 1):
        out.become(node, attributes=attributes)
        return
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
        if known.scalar < 1:
            raise CannotConvert("TopK takes one element or more before 10", remedy="leave the node out")
        out.become(node, inputs=[data], attributes={**node.attributes, "k": known.scalar})
        return
    shape = out.shape(data)
    size = shape[axis] if shape is not None else None
    if shape is None or size is None:
        out.require_constant(count, "input K")
    everything = [out.fresh("sorted") for _ in node.outputs]
    out.become(node, inputs=[data], outputs=everything, attributes={**node.attributes, "k": size})
    bounds = [out.constant([0], "int64"), count, out.constant([axis % len(shape or ())], "int64")]
    for whole, part in zip(everything, node.outputs, strict=True):
        if part:
            out.emit("Slice", [whole, *bounds], [part], opset=10)


def _order_by_halves(node: Node, axis: int, size: int, out: Rewriter) -> None:
    """64 bits are ordered by their lower half and then, as equal ones keep their order, by their upper."""
    data, count = node.inputs
    width = out.constant(1 << 32, out.element_type(data))
    upper = out.emit("Div", [data, width])
    lower = out.emit("Sub", [data, out.emit("Mul", [upper, width])])
    by_lower = _places(lower, out.constant([size], "int64"), axis, node, out)
    upper_by_lower = _taken(upper, by_lower, axis, 1, out)
    by_both = _places(upper_by_lower, count, axis, node, out)
    places = _taken(by_lower, by_both, axis, [node.output(1) or out.fresh("places")], out)
    if node.outputs[0]:
        _taken(data, places, axis, node.outputs[:1], out)


def _places(numbers: str, count: str, axis: int, node: Node, out: Rewriter) -> str:
    keys = out.emit("Cast", [numbers], to=BY_NAME["double"].number)
    if not node.attribute("largest", 1):
        keys = out.emit("Neg", [keys])
    return out.emit_all("TopK", [keys, count], 2, axis=axis)[1]


def _taken(data: str, places: str, axis: int, outputs: Sequence[str] | int, out: Rewriter) -> str:
    return out.emit("GatherElements", [data, places], outputs, axis=axis, opset=11)
