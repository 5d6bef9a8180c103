"""Downgrade reductions: `axes` is an attribute below opset 13 (ReduceSum) or 18 (all others)."""

from __future__ import annotations

from opshift.adapters.computed_reduction import reduce_over_computed_axes
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

FLOATS = ("float", "double", "float16", "bfloat16")
WITHOUT_AXES = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log", "ReduceSumSquare": "Mul"}
"""Elementwise equivalent of each reduction over no axes; for all others it is Identity."""


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
    """Move constant `axes` to the attribute; emit the elementwise equivalent of a reduction over no axes."""
    axes = node.input(1)
    known = out.constant_value(axes)
    if axes and known is None:
        reduce_over_computed_axes(node, out)
        return
    attributes = node.without("noop_with_empty_axes")
    if known is not None and known.values:
        attributes["axes"] = known.values
    elif node.attribute("noop_with_empty_axes", 0):
        _reduce_no_axes(node, out)
        return
    out.become(node, inputs=node.inputs[:1], attributes=attributes)


def _reduce_no_axes(node: Node, out: Rewriter) -> None:
    data = node.inputs[0]
    op_type = WITHOUT_AXES.get(node.op_type, "Identity")
    if op_type == "Log" and out.element_type(data) not in FLOATS:
        raise CannotConvert(
            f"{node.op_type} over no axes is Log, which does not support {out.element_type(data)}"
        )
    inputs = [data, data] if op_type == "Mul" else [data]
    out.become(node, op_type=op_type, inputs=inputs, attributes={})
