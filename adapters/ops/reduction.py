"""Reductions: `axes` is an attribute before opset 13 (ReduceSum) or 18 (all others).

In ArgMax and ArgMin, `select_last_index` exists since opset 12.
"""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.expression import FLOAT_TYPES, Expression
from opshift.adapters.emit.indices import axis_count, count_axes, dimension_scalar, shape_without_axes
from opshift.adapters.emit.shapes import ALLOWZERO_OPSET, is_nonempty

ELEMENTWISE_EQUIVALENTS = {
    "ReduceL1": "Abs",
    "ReduceL2": "Abs",
    "ReduceLogSum": "Log",
    "ReduceSumSquare": "Mul",
}
"""Elementwise operator that replaces a reduction over no axes; Identity replaces all other reductions."""


@adapter("ReduceSum", 13, 11)
@adapter(
    (
        "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
        "ReduceProd", "ReduceSumSquare",
    ),
    18,
    13,
)  # fmt: skip
def move_axes_to_attribute(node: Node, out: Rewriter) -> None:
    """Move constant `axes` to the attribute; emit other nodes for computed axes, or to reduce no axes."""
    axes = node.input(1)
    known = out.constant_value(axes)
    if axes and known is None:
        _reduce_computed_axes(node, out)
        return
    attributes = node.without("noop_with_empty_axes")
    if known is not None and known.values:
        attributes["axes"] = known.values
    elif node.attribute("noop_with_empty_axes", 0):
        _reduce_no_axes(node, out)
        return
    out.replace(node, inputs=node.inputs[:1], attributes=attributes)


def _reduce_computed_axes(node: Node, out: Rewriter) -> None:
    """Split each dimension n into (n, 1) if its axis is reduced, else (1, n), and reduce the first part."""
    data = node.inputs[0]
    rank = out.rank(data)
    chosen = _reduced_axes(node, rank, out)
    shape, is_reduced = (
        Expression(name, "int64", out, rank=1) for name in (out.emit("Shape", [data]), chosen)
    )
    kept = shape - (shape - 1) * is_reduced
    reduced = shape - kept + 1
    pairs = [position for axis in range(rank) for position in (axis, rank + axis)]
    sizes = out.emit("Gather", [out.emit("Concat", [reduced.name, kept.name], axis=0), out.int64(pairs)])
    split = out.emit("Reshape", [data, sizes], opset=ALLOWZERO_OPSET, allowzero=1)
    keepdims = node.attribute("keepdims", 1)
    axes = range(0, 2 * rank, 2)
    result = out.emit(node.op_type, [split], node.outputs if keepdims else 1, axes=axes or None, keepdims=0)
    if not keepdims:
        # If the data is not empty, the shape of the result contains no 0.
        allowzero = int(not is_nonempty(data, out))
        remaining = shape_without_axes(result, chosen, out)
        out.emit("Reshape", [result, remaining], node.outputs, opset=ALLOWZERO_OPSET, allowzero=allowzero)


def _reduced_axes(node: Node, rank: int, out: Rewriter) -> str:
    """Emit 1 for each reduced axis, even if the axis is listed more than once, and 0 for every other axis."""
    axes = node.inputs[1]
    chosen = count_axes(axes, rank, out)
    if axis_count(axes, out) != 1:
        chosen = out.cast(out.cast(chosen, "bool"), "int64")
    if axis_count(axes, out) or node.attribute("noop_with_empty_axes", 0):
        return chosen
    # Empty axes mean all axes, unless `noop_with_empty_axes` is set.
    is_empty = out.emit("Equal", [out.emit("Size", [axes]), out.int64(0)])
    return out.emit("Add", [chosen, out.cast(is_empty, "int64")])


def _reduce_no_axes(node: Node, out: Rewriter) -> None:
    data = node.inputs[0]
    op_type = ELEMENTWISE_EQUIVALENTS.get(node.op_type, "Identity")
    if op_type == "Log" and out.element_type(data) not in FLOAT_TYPES:
        reason = f"{node.op_type} over no axes is Log, which does not support {out.element_type(data)}"
        raise CannotConvert(reason, "type.unsupported", subject=out.element_type(data))
    inputs = [data, data] if op_type == "Mul" else [data]
    out.replace(node, op_type=op_type, inputs=inputs, attributes={})


REVERSE_SLICE_END = -(2**31)
"""End of a slice with step -1 through a whole dimension."""


@adapter(("ArgMax", "ArgMin"), 12, 11)
def replace_select_last_index(node: Node, out: Rewriter) -> None:
    """Select the first index in reversed data, and subtract this index from the last index."""
    attributes = node.without("select_last_index")
    if not node.attribute("select_last_index", 0):
        out.replace(node, attributes=attributes)
        return
    data, axis = node.inputs[0], node.attribute("axis", 0)
    bounds = [out.int64([each]) for each in (-1, REVERSE_SLICE_END, axis, -1)]
    reversed_data = out.emit("Slice", [data, *bounds])
    index = out.fresh(node.op_type.lower())
    out.replace(node, inputs=[reversed_data], outputs=[index], attributes=attributes)
    last = out.emit("Sub", [dimension_scalar(data, axis, out), out.int64(1)])
    out.emit("Sub", [last, index], node.outputs)
