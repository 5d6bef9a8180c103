"""Reductions over axes that are computed, in opsets whose reductions want them written out."""

from __future__ import annotations

from opshift.adapters.computed_axes import chosen_axes, count_of, require_elements, without_axes
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.registry.element_types import BY_NAME

FLOATS = {"float": 3.4028234663852886e38, "double": 1.7976931348623157e308}
"""The types that exponentials are summed in, with the greatest finite number of each."""
SUMMED = ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceMean", "ReduceLogSumExp")


def reduce_over_computed_axes(node: Node, out: Rewriter) -> None:
    """Through ReduceSum, which takes computed axes from 13 on, or one axis after another.

    Raises:
        CannotConvert: there is no exact form.
    """
    if node.op_type in SUMMED:
        _reduce_by_sum(node, out)
    else:
        _reduce_chosen_axes(node, out)


def _reduce_by_sum(node: Node, out: Rewriter) -> None:
    data = node.inputs[0]
    element_type = out.element_type(data)
    if node.op_type == "ReduceLogSumExp":
        _log_of_summed_exponentials(node, element_type, out)
    elif node.op_type == "ReduceMean":
        _mean(node, element_type, out)
    elif node.op_type == "ReduceL1":
        _sum(node, out.emit("Abs", [data], opset=13), node.outputs[0], out)
    elif node.op_type == "ReduceSumSquare":
        _sum(node, out.emit("Mul", [data, data], opset=13), node.outputs[0], out)
    else:
        _function_of_sum(node, element_type, out)


def _function_of_sum(node: Node, element_type: str, out: Rewriter) -> None:
    """The root of a sum of squares, or the logarithm of a sum."""
    _require_float(node, element_type)
    data, (function, squared) = node.inputs[0], {"ReduceL2": ("Sqrt", True)}.get(node.op_type, ("Log", False))
    terms = out.emit("Mul", [data, data], opset=13) if squared else data
    total = _sum(node, terms, out.fresh("sum"), out)
    out.emit(function, [total], node.outputs, opset=13)


def _mean(node: Node, element_type: str, out: Rewriter) -> None:
    """The sum over how many elements each of its elements stands for; halves are summed wider."""
    number, is_half = BY_NAME[element_type].number, element_type in ("float16", "bfloat16")
    terms = node.inputs[0]
    if is_half:
        number = BY_NAME["float"].number
        terms = out.emit("Cast", [terms], to=number, opset=13)
    total = _sum(node, terms, out.fresh("sum"), out)
    sizes = (out.emit("Size", [name], opset=13) for name in (terms, total))
    numbers = [out.emit("Cast", [size], to=BY_NAME["double"].number, opset=13) for size in sizes]
    count = out.emit("Cast", [out.emit("Div", numbers, opset=13)], to=number, opset=13)
    if not is_half:
        out.emit("Div", [total, count], node.outputs, opset=13)
        return
    mean = out.emit("Div", [total, count], opset=13)
    out.emit("Cast", [mean], node.outputs, to=BY_NAME[element_type].number, opset=13)


def _log_of_summed_exponentials(node: Node, element_type: str, out: Rewriter) -> None:
    """The greatest element of each sum is taken out of its exponentials, which then do not overflow."""
    data, axes = node.inputs
    if element_type not in FLOATS:
        raise CannotConvert(f"its axes are no constant, and its data is {element_type}", remedy=FOLD)
    if 0 in (out.shape(data) or ()):
        total = _sum(node, out.emit("Exp", [data], opset=13), out.fresh("sum"), out)
        out.emit("Log", [total], node.outputs, opset=13)
        return
    noop = node.attribute("noop_with_empty_axes", 0)
    greatest = out.emit("ReduceMax", [data, axes], opset=18, keepdims=1, noop_with_empty_axes=noop)
    limits = [out.constant(sign * FLOATS[element_type], element_type) for sign in (-1, 1)]
    finite = out.emit("Clip", [greatest, *limits], opset=13)
    powers = out.emit("Exp", [out.emit("Sub", [data, finite], opset=13)], opset=13)
    logarithm = out.emit("Log", [_sum(node, powers, out.fresh("sum"), out)], opset=13)
    out.emit("Add", [logarithm, _alike(finite, logarithm, node, out)], node.outputs, opset=13)


def _alike(kept: str, dropped: str, node: Node, out: Rewriter) -> str:
    """The greatest elements without the dimensions that the sums have not."""
    if node.attribute("keepdims", 1):
        return kept
    shape = out.shape(node.inputs[0])
    if shape is not None and all(shape):
        return out.emit("Reshape", [kept, out.emit("Shape", [dropped], opset=13)], opset=13)
    return _sum(node, kept, out.fresh("greatest"), out)


def _sum(node: Node, terms: str, total: str, out: Rewriter) -> str:
    return out.emit("ReduceSum", [terms, node.inputs[1]], [total], opset=13, **node.attributes)


def _require_float(node: Node, element_type: str) -> None:
    if element_type not in ("float16", "bfloat16", *FLOATS):
        raise CannotConvert(f"its axes are no constant, and its data is {element_type}", remedy=FOLD)


def _reduce_chosen_axes(node: Node, out: Rewriter) -> None:
    """For each axis the reduced and the whole dimension stand side by side, and a Slice takes one of them."""
    data = node.inputs[0]
    rank = out.rank(data)
    if not rank:
        out.become(node, op_type="Identity", inputs=[data], attributes={})
        return
    keepdims = node.attribute("keepdims", 1)
    chosen = _chosen(node, rank, out)
    starts = out.emit("Sub", [out.constant([1], "int64"), chosen])
    ends = out.emit("Add", [chosen, out.emit("Mul", [starts, out.constant([2**31 - 1], "int64")])])
    for axis in range(rank):
        bounds = [out.constant([each], "int64") for each in (axis, axis + 1, 0)]
        window = [out.emit("Slice", [each, *bounds]) for each in (starts, ends)]
        reduced = out.emit(node.op_type, [data], axes=[axis], keepdims=1)
        both = out.emit("Concat", [reduced, data], axis=axis)
        outputs = node.outputs if keepdims and axis == rank - 1 else 1
        data = out.emit("Slice", [both, *window, bounds[0]], outputs)
    if not keepdims:
        _drop(data, chosen, node, out)


def _chosen(node: Node, rank: int, out: Rewriter) -> str:
    """1 for each axis that is reduced, however often it is listed, 0 for the others."""
    axes, whole = node.inputs[1], BY_NAME["int64"].number
    chosen = chosen_axes(axes, rank, out)
    if count_of(axes, out) != 1:
        chosen = out.emit("Cast", [out.emit("Cast", [chosen], to=BY_NAME["bool"].number)], to=whole)
    if count_of(axes, out) or node.attribute("noop_with_empty_axes", 0):
        return chosen
    none = out.emit("Equal", [out.emit("Size", [axes]), out.constant(0, "int64")])
    return out.emit("Add", [chosen, out.emit("Cast", [none], to=whole)])


def _drop(kept: str, chosen: str, node: Node, out: Rewriter) -> None:
    """The dimensions that were reduced are taken out of the shape."""
    data, axes = node.inputs
    shape = out.shape(data)
    if not count_of(axes, out) or (shape is not None and all(shape)):
        require_elements(data, axes, out)
        out.emit("Reshape", [kept, without_axes(kept, chosen, out)], node.outputs)
    else:
        out.emit("Squeeze", [kept, axes], node.outputs, opset=13)


FOLD = "make the axes an initializer that is no graph input"
