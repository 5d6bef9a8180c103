"""Squeeze and Unsqueeze: `axes` changed from an attribute to an input in opset 13."""

from __future__ import annotations

from opshift.adapters.computed_axes import chosen_axes, count_of, require_elements, unchosen, without_axes
from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Squeeze", 13, 11)
def squeezed_axes_become_an_attribute(node: Node, out: Rewriter) -> None:
    """Move constant axes to the attribute; for computed axes, emit a Reshape without these dimensions."""
    if _emit_constant_axes(node, out):
        return
    data, axes = node.inputs
    require_elements(data, axes, out)
    if not count_of(axes, out):
        # Always raises: the axes are not a constant.
        out.require_constant(axes, "input axes")
    chosen = chosen_axes(axes, out.rank(data), out)
    out.emit("Reshape", [data, without_axes(data, chosen, out)], node.outputs)


@adapter("Unsqueeze", 13, 11)
def new_axes_become_an_attribute(node: Node, out: Rewriter) -> None:
    """Move constant axes to the attribute; for computed axes, emit a Reshape with dimensions of 1 added."""
    if _emit_constant_axes(node, out):
        return
    data, axes = node.inputs
    require_elements(data, axes, out)
    count = count_of(axes, out)
    if count is None:
        # Always raises: the axes are not a constant, and the rank of the output depends on their count.
        out.require_constant(axes, "input axes")
    rank = out.rank(data)
    ones = out.constant([1] * (rank + (count or 0)), "int64")
    if not rank:
        out.emit("Reshape", [data, ones], node.outputs)
        return
    remaining = unchosen(chosen_axes(axes, rank + (count or 0), out), out)
    data_axes = out.emit("Reshape", [out.emit("NonZero", [remaining]), out.constant([-1], "int64")])
    shape = out.emit("ScatterElements", [ones, data_axes, out.emit("Shape", [data])], axis=0)
    out.emit("Reshape", [data, shape], node.outputs)


def _emit_constant_axes(node: Node, out: Rewriter) -> bool:
    """Emit the node with `axes` as an attribute and return true, if they are constant or omitted."""
    axes = node.input(1)
    known = out.constant_value(axes)
    if axes and known is None:
        return False
    # Some model checkers require axes in ascending order.
    attributes = {} if known is None else {"axes": sorted(known.values)}
    out.become(node, inputs=node.inputs[:1], attributes=attributes)
    return True
