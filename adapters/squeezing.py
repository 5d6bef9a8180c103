"""Squeeze and Unsqueeze: `axes` became an input at 13."""

from __future__ import annotations

from opshift.adapters.computed_axes import chosen_axes, count_of, require_elements, unchosen, without_axes
from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Squeeze", 13, 11)
def squeezed_axes_become_an_attribute(node: Node, out: Rewriter) -> None:
    """Constant axes are written out; by computed ones the data is reshaped."""
    if _written_out(node, out):
        return
    data, axes = node.inputs
    require_elements(data, axes, out)
    if not count_of(axes, out):
        out.require_constant(axes, "input axes")
    chosen = chosen_axes(axes, out.rank(data), out)
    out.emit("Reshape", [data, without_axes(data, chosen, out)], node.outputs)


@adapter("Unsqueeze", 13, 11)
def new_axes_become_an_attribute(node: Node, out: Rewriter) -> None:
    """Constant axes are written out; around computed ones the sizes are put in their places."""
    if _written_out(node, out):
        return
    data, axes = node.inputs
    require_elements(data, axes, out)
    count = count_of(axes, out)
    if count is None:
        out.require_constant(axes, "input axes")
    rank = out.rank(data)
    ones = out.constant([1] * (rank + (count or 0)), "int64")
    if not rank:
        out.emit("Reshape", [data, ones], node.outputs)
        return
    others = unchosen(chosen_axes(axes, rank + (count or 0), out), out)
    places = out.emit("Reshape", [out.emit("NonZero", [others]), out.constant([-1], "int64")])
    shape = out.emit("ScatterElements", [ones, places, out.emit("Shape", [data])], axis=0)
    out.emit("Reshape", [data, shape], node.outputs)


def _written_out(node: Node, out: Rewriter) -> bool:
    """Emit the node with its axes as an attribute, if they are constant; some checkers want them in order."""
    axes = node.input(1)
    known = out.constant_value(axes)
    if axes and known is None:
        return False
    stated = {} if known is None else {"axes": sorted(known.values)}
    out.become(node, inputs=node.inputs[:1], attributes=stated)
    return True
