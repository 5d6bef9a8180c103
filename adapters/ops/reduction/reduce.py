"""Reductions: `axes` is an attribute before opset 13 (ReduceSum) or 18 (all others)."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.cast import LARGEST_FINITE
from opshift.adapters.emit.indices import axis_count, count_axes, require_nonempty, shape_without_axes

FLOAT_TYPES = ("float", "double", "float16", "bfloat16")

ELEMENTWISE_EQUIVALENTS = {
    "ReduceL1": "Abs",
    "ReduceL2": "Abs",
    "ReduceLogSum": "Log",
    "ReduceSumSquare": "Mul",
}
"""Elementwise equivalent of each reduction over no axes; for all others it is Identity."""

LOG_SUM_EXP_TYPES = ("float", "double")
"""Element types in which ReduceLogSumExp over computed axes is rewritten."""


CONSTANT_AXES_REMEDY = "make the axes an initializer that is not a graph input"
"""Remedy for computed axes that cannot be converted."""


FUNCTIONS_OF_SUMS = {
    "ReduceL1": ("Abs", ""),
    "ReduceSumSquare": ("Mul", ""),
    "ReduceL2": ("Mul", "Sqrt"),
    "ReduceLogSum": ("", "Log"),
}
"""Operators before and after ReduceSum that express a reduction, or `""`; Mul squares."""


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
    """Move constant `axes` to the attribute; emit the elementwise equivalent of a reduction over no axes."""
    axes = node.input(1)
    known = out.constant_value(axes)
    if axes and known is None:
        # ReduceSum accepts computed axes since opset 13; other reductions are applied axis by axis.
        if node.op_type in ("ReduceMean", "ReduceLogSumExp", *FUNCTIONS_OF_SUMS):
            _reduce_by_sum(node, out)
        else:
            _reduce_by_axis(node, out)
        return
    attributes = node.without("noop_with_empty_axes")
    if known is not None and known.values:
        attributes["axes"] = known.values
    elif node.attribute("noop_with_empty_axes", 0):
        _reduce_no_axes(node, out)
        return
    out.replace(node, inputs=node.inputs[:1], attributes=attributes)


def _reduce_by_sum(node: Node, out: Rewriter) -> None:
    data, element_type, out = node.inputs[0], out.element_type(node.inputs[0]), out.for_opset(13)
    if node.op_type == "ReduceLogSumExp":
        _log_sum_exp(node, element_type, out)
        return
    if node.op_type == "ReduceMean":
        _mean(node, element_type, out)
        return
    before, after = FUNCTIONS_OF_SUMS[node.op_type]
    if after:
        _require_type(element_type, FLOAT_TYPES)
    terms = out.emit(before, [data, data] if before == "Mul" else [data]) if before else data
    total = _sum(node, terms, out, out.fresh("sum") if after else node.outputs[0])
    if after:
        out.emit(after, [total], node.outputs)


def _require_type(element_type: str, supported: Sequence[str]) -> None:
    if element_type not in supported:
        raise CannotConvert(
            f"the axes are not constant, and the data is {element_type}", remedy=CONSTANT_AXES_REMEDY
        )


def _sum(node: Node, terms: str, out: Rewriter, total: str = "") -> str:
    total = total or out.fresh("sum")
    return out.emit("ReduceSum", [terms, node.inputs[1]], [total], **node.attributes)


def _log_sum_exp(node: Node, element_type: str, out: Rewriter) -> None:
    """Emit log-sum-exp: subtracting the maximum of each sum first keeps the exponentials from overflowing."""
    data, axes = node.inputs
    _require_type(element_type, LOG_SUM_EXP_TYPES)
    if 0 in (out.shape(data) or ()):
        out.emit("Log", [_sum(node, out.emit("Exp", [data]), out)], node.outputs)
        return
    noop = node.attribute("noop_with_empty_axes", 0)
    maxima = out.emit("ReduceMax", [data, axes], opset=18, keepdims=1, noop_with_empty_axes=noop)
    limits = [out.constant(sign * LARGEST_FINITE[element_type], element_type) for sign in (-1, 1)]
    # Infinite maxima are clipped: infinity minus infinity would be NaN.
    finite = out.emit("Clip", [maxima, *limits])
    exponentials = out.emit("Exp", [out.emit("Sub", [data, finite])])
    logarithm = out.emit("Log", [_sum(node, exponentials, out)])
    out.emit("Add", [logarithm, _match_shape(finite, logarithm, node, out)], node.outputs)


def _match_shape(kept: str, dropped: str, node: Node, out: Rewriter) -> str:
    """Emit the maxima in the shape of the sums, which lack the reduced dimensions without `keepdims`."""
    if node.attribute("keepdims", 1):
        return kept
    shape = out.shape(node.inputs[0])
    if shape is not None and all(shape):
        return out.emit("Reshape", [kept, out.emit("Shape", [dropped])])
    # Reshape would misread a dimension of 0; each maximum is the only element of its sum.
    return _sum(node, kept, out, out.fresh("greatest"))


def _mean(node: Node, element_type: str, out: Rewriter) -> None:
    """Emit the sum divided by the number of elements in each sum; 16-bit floats are summed as float."""
    is_half = element_type in ("float16", "bfloat16")
    compute_type = "float" if is_half else element_type
    terms = out.cast(node.inputs[0], compute_type) if is_half else node.inputs[0]
    total = _sum(node, terms, out)
    # The axes are unknown, so the count follows from the sizes of input and result.
    sizes = (out.emit("Size", [name]) for name in (terms, total))
    count = out.cast(out.emit("Div", [out.cast(size, "double") for size in sizes]), compute_type)
    mean = out.emit("Div", [total, count], 1 if is_half else node.outputs)
    if is_half:
        out.cast(mean, element_type, node.outputs)


def _reduce_by_axis(node: Node, out: Rewriter) -> None:
    """Reduce axis by axis: concatenate reduced and original data, and select one of them by a Slice."""
    data = node.inputs[0]
    rank = out.rank(data)
    if not rank:
        out.replace(node, op_type="Identity", inputs=[data], attributes={})
        return
    keepdims = node.attribute("keepdims", 1)
    chosen = _reduced_axes(node, rank, out)
    # For a reduced axis the slice is [0, 1), which is the reduced data, else [1, end), the original data.
    starts = out.emit("Sub", [out.int64([1]), chosen])
    ends = out.emit("Add", [chosen, out.emit("Mul", [starts, out.int64([2**31 - 1])])])
    for axis in range(rank):
        bounds = [out.int64([each]) for each in (axis, axis + 1, 0)]
        window = [out.emit("Slice", [each, *bounds]) for each in (starts, ends)]
        reduced = out.emit(node.op_type, [data], axes=[axis], keepdims=1)
        both = out.emit("Concat", [reduced, data], axis=axis)
        outputs = node.outputs if keepdims and axis == rank - 1 else 1
        data = out.emit("Slice", [both, *window, bounds[0]], outputs)
    if not keepdims:
        _drop_reduced(data, chosen, node, out)


def _reduced_axes(node: Node, rank: int, out: Rewriter) -> str:
    """Emit 1 for each reduced axis, even if it is listed more than once, and 0 for every other axis."""
    axes = node.inputs[1]
    chosen = count_axes(axes, rank, out)
    if axis_count(axes, out) != 1:
        chosen = out.cast(out.cast(chosen, "bool"), "int64")
    if axis_count(axes, out) or node.attribute("noop_with_empty_axes", 0):
        return chosen
    # Empty axes mean all axes, unless `noop_with_empty_axes` is set.
    is_empty = out.emit("Equal", [out.emit("Size", [axes]), out.int64(0)])
    return out.emit("Add", [chosen, out.cast(is_empty, "int64")])


def _drop_reduced(kept: str, chosen: str, node: Node, out: Rewriter) -> None:
    """Remove the reduced dimensions from the shape."""
    data, axes = node.inputs
    shape = out.shape(data)
    if not axis_count(axes, out) or (shape is not None and all(shape)):
        require_nonempty(data, axes, out)
        out.emit("Reshape", [kept, shape_without_axes(kept, chosen, out)], node.outputs)
    else:
        out.emit("Squeeze", [kept, axes], node.outputs, opset=13)


def _reduce_no_axes(node: Node, out: Rewriter) -> None:
    data = node.inputs[0]
    op_type = ELEMENTWISE_EQUIVALENTS.get(node.op_type, "Identity")
    if op_type == "Log" and out.element_type(data) not in FLOAT_TYPES:
        raise CannotConvert(
            f"{node.op_type} over no axes is Log, which does not support {out.element_type(data)}"
        )
    inputs = [data, data] if op_type == "Mul" else [data]
    out.replace(node, op_type=op_type, inputs=inputs, attributes={})
