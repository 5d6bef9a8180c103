"""TopK: `K` is an input since version 10; version 11 added `largest`, `sorted` and negative axes."""

from opshift.adapters import CannotConvert, Node, Rewriter, UnknownShape, adapter, require_supported_types
from opshift.adapters.emit.indices import nonnegative_axis


@adapter("TopK", 11, 10)
def negate_for_smallest(node: Node, out: Rewriter) -> None:
    """Negate the input to select the smallest elements; sort 64-bit integers by halves.

    Equal elements keep their order. Without `sorted`, any order of the results is correct, including the
    sorted order of version 10.
    """
    data, axis = node.inputs[0], node.attribute("axis", -1)
    shape = out.shape(data)
    if out.known_element_type(data) in ("int64", "uint64") and shape is not None and shape[axis] is not None:
        _sort_by_halves(node, axis % len(shape), shape[axis] or 0, out)
        return
    require_supported_types(node, out)
    attributes = {"axis": axis if axis == -1 else nonnegative_axis(axis, data, out)}
    if node.attribute("largest", 1):
        out.replace(node, attributes=attributes)
        return
    values = out.fresh("negatives")
    inputs = [out.emit("Neg", [data]), node.inputs[1]]
    out.replace(node, inputs=inputs, outputs=[values, *node.outputs[1:]], attributes=attributes)
    if node.outputs[0]:
        out.emit("Neg", [values], node.outputs[:1])


@adapter("TopK", 10, 1)
def move_k_to_attribute(node: Node, out: Rewriter) -> None:
    """Move a constant `K` to the attribute; for a computed `K`, sort all elements and slice."""
    data, count = node.inputs
    constant_count = out.constant_value(count)
    axis = node.attribute("axis", -1)
    if constant_count is not None:
        if constant_count.scalar < 1:
            reason = f"K is {constant_count.scalar}, but before version 10 it must be at least 1"
            raise CannotConvert(reason, "value.unsupported", remedy="use empty tensors for the outputs")
        out.replace(node, inputs=[data], attributes={**node.attributes, "k": constant_count.scalar})
        return
    shape = out.shape(data)
    size = shape[axis] if shape is not None else None
    if shape is None or size is None:
        # To sort all elements, TopK-1 needs their number as the attribute `k`.
        reason = f"K ({count!r}) is not a constant, and the size of dimension {axis} of {data!r} is unknown"
        raise UnknownShape(reason, data, otherwise="make K a constant")
    all_sorted = [out.fresh("sorted") for _ in node.outputs]
    out.replace(node, inputs=[data], outputs=all_sorted, attributes={**node.attributes, "k": size})
    bounds = [out.int64([0]), count, out.int64([axis % len(shape or ())])]
    for all_values, selected in zip(all_sorted, node.outputs, strict=True):
        if selected:
            out.emit("Slice", [all_values, *bounds], [selected], opset=10)


def _sort_by_halves(node: Node, axis: int, size: int, out: Rewriter) -> None:
    """Sort 64-bit integers by their lower 32 bits, then by their upper 32 bits.

    The second sort is stable, so elements with equal upper halves remain in the order of their lower halves.
    """
    data, count = node.inputs
    width = out.constant(1 << 32, out.element_type(data))
    upper = out.emit("Div", [data, width])
    lower = out.emit("Sub", [data, out.emit("Mul", [upper, width])])
    order_by_lower = _sorted_indices(lower, out.int64([size]), axis, node, out)
    upper_by_lower = out.emit("GatherElements", [upper, order_by_lower], axis=axis, opset=11)
    order_by_both = _sorted_indices(upper_by_lower, count, axis, node, out)
    indices = node.output(1) or out.fresh("places")
    out.emit("GatherElements", [order_by_lower, order_by_both], [indices], axis=axis, opset=11)
    if node.outputs[0]:
        out.emit("GatherElements", [data, indices], node.outputs[:1], axis=axis, opset=11)


def _sorted_indices(values: str, count: str, axis: int, node: Node, out: Rewriter) -> str:
    # TopK-10 sorts only floats; double represents both halves exactly.
    keys = out.cast(values, "double")
    if not node.attribute("largest", 1):
        keys = out.emit("Neg", [keys])
    return out.emit_all("TopK", [keys, count], 2, axis=axis)[1]
