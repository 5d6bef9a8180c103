"""Reductions: `axes` became an input at 13 (ReduceSum) and 18, and may be empty without meaning all axes."""

from __future__ import annotations

from opshift.adapters.computed_reduction import reduce_over_computed_axes
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

FLOATS = ("float", "double", "float16", "bfloat16")
WITHOUT_AXES = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log", "ReduceSumSquare": "Mul"}
"""What is left of a reduction over no axes; Identity of the others."""


@adapter("ReduceSum", 13, 11)
@adapter(
    (
        "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
        "ReduceProd", "ReduceSumSquare",
    ),
    18,
    13,
)  # fmt: skip
def axes_become_an_attribute(node: Node, out: Rewriter) -> None:
    """Constant axes are written out; none at all are all axes, or leave each element to itself."""
    axes = node.input(1)
    known = out.constant_value(axes)
    if axes and known is None:
        reduce_over_computed_axes(node, out)
        return
    attributes = node.without("noop_with_empty_axes")
    if known is not None and known.values:
        attributes["axes"] = known.values
    elif node.attribute("noop_with_empty_axes", 0):
        _reduce_nothing(node, out)
        return
    out.become(node, inputs=node.inputs[:1], attributes=attributes)


def _reduce_nothing(node: Node, out: Rewriter) -> None:
    data = node.inputs[0]
    remainder = WITHOUT_AXES.get(node.op_type, "Identity")
    if remainder == "Log" and out.element_type(data) not in FLOATS:
        raise CannotConvert("it is the logarithm of whole numbers, which Log does not take")
    inputs = [data, data] if remainder == "Mul" else [data]
    out.become(node, op_type=remainder, inputs=inputs, attributes={})
