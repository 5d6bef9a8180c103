"""Negative axes, which count from the last dimension and are allowed since opset 11."""

from __future__ import annotations

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.adapters.emit.indices import nonnegative_axis
from opshift.model.node import Node

REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip


@adapter(("ArgMax", "ArgMin", "Softmax", "LogSoftmax", "Hardmax"), 11, 1)
@adapter("Split", 11, 2)
@adapter("Concat", 11, 4)
@adapter(("Compress", "Flatten"), 11, 9)
def make_axis_nonnegative(node: Node, out: Rewriter) -> None:
    """Add the rank to a negative `axis`."""
    axis = node.attribute("axis")
    if axis is None or axis >= 0:
        out.replace(node)
        return
    axis = nonnegative_axis(axis, node.inputs[0], out)
    out.replace(node, attributes={**node.attributes, "axis": axis})


@adapter((*REDUCTIONS, "Squeeze"), 11, 1)
def make_axes_nonnegative(node: Node, out: Rewriter) -> None:
    """Add the rank to negative `axes`, and sort them."""
    axes = node.attribute("axes") or ()
    if all(axis >= 0 for axis in axes):
        out.replace(node)
        return
    axes = sorted(nonnegative_axis(axis, node.inputs[0], out) for axis in axes)
    out.replace(node, attributes={**node.attributes, "axes": axes})


@adapter("Unsqueeze", 11, 1)
def make_unsqueeze_axes_nonnegative(node: Node, out: Rewriter) -> None:
    """Add the rank of the output, which includes the new dimensions, to negative `axes`, and sort them."""
    axes = node.attribute("axes")
    if all(axis >= 0 for axis in axes):
        out.replace(node)
        return
    rank = out.rank(node.inputs[0]) + len(axes)
    out.replace(node, attributes={"axes": sorted(axis + rank if axis < 0 else axis for axis in axes)})
