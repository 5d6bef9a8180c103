"""Pooling: how windows are rounded, dilated and padded, and what type the exponent of a norm has."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.dilated_pooling import average, largest, norm
from opshift.adapters.node import Node
from opshift.adapters.pool_windows import Window, pads_of, pads_to_round_down, placed_windows, windows_of
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

REBUILT = {"AveragePool": average, "MaxPool": largest, "LpPool": norm}
"""What gathers the windows of an operator; runtimes refuse padding as long as a window's elements."""


@adapter(("LpPool", "GlobalLpPool"), 1, 2)
def exponent_becomes_whole(node: Node, out: Rewriter) -> None:
    """Only whole exponents can be written from 2 on."""
    if node.op_type == "LpPool" and "kernel_shape" not in node.attributes:
        raise CannotConvert("kernel_shape is left out, which LpPool-2 requires", remedy="state kernel_shape")
    exponent = float(node.attribute("p", 2.0))
    if not exponent.is_integer():
        raise CannotConvert(f"p is {exponent}; from version 2 on it is a whole number")
    out.become(node, attributes={**node.without("p"), "p": int(exponent)})


@adapter(("LpPool", "GlobalLpPool"), 2, 1)
def exponent_is_a_float(node: Node, out: Rewriter) -> None:
    """The same number."""
    out.become(node, attributes={**node.without("p"), "p": float(node.attribute("p", 2))})


@adapter("AveragePool", 22, 19)
@adapter("MaxPool", 22, 12)
@adapter("LpPool", 22, 18)
def last_window_may_start_in_the_padding(node: Node, out: Rewriter) -> None:
    """Rounding up, version 22 leaves out a window of padding alone; explicit padding says so before."""
    windows = windows_of(node, out)
    if not any(each.may_start_beyond for each in windows):
        out.become(node)
        return
    _rounded_down(node, out)


@adapter("AveragePool", 19, 11)
def averages_have_no_dilations(node: Node, out: Rewriter) -> None:
    """Dilated windows are gathered and summed."""
    if not _is_dilated(node):
        out.become(node, attributes=node.without("dilations"))
        return
    average(node, placed_windows(node, out), out)


@adapter("AveragePool", 10, 7)
def averages_round_down(node: Node, out: Rewriter) -> None:
    """The padding that rounding up adds is stated; where it would be averaged, windows are summed."""
    _without_rounding_up(node, out)


@adapter("AveragePool", 7, 1)
def padding_is_never_averaged(node: Node, out: Rewriter) -> None:
    """Where padding counts, zeros are put around the data first."""
    attributes = node.without("count_include_pad")
    windows = windows_of(node, out)
    padded = any(each.before or each.after or each.same for each in windows)
    if not node.attribute("count_include_pad", 0) or not padded:
        out.become(node, attributes=attributes)
        return
    pads = [each.before for each in windows] + [each.after for each in windows]
    if windows[0].same:
        pads = pads_of(placed_windows(node, out))
    rank = len(windows)
    data = out.emit("Pad", [node.inputs[0]], opset=2, pads=[0, 0, *pads[:rank], 0, 0, *pads[rank:]])
    for name in ("pads", "auto_pad"):
        attributes.pop(name, None)
    out.become(node, inputs=[data], attributes=attributes)


@adapter("MaxPool", 10, 8)
def maxima_have_no_dilations(node: Node, out: Rewriter) -> None:
    """Dilated windows are gathered; the padding that rounding up adds is stated."""
    if not _is_dilated(node):
        _without_rounding_up(node, out)
        return
    if out.is_used(node.output(1)):
        raise CannotConvert("output Indices is used of dilated windows, which no other form gives")
    largest(node, placed_windows(node, out), out)


@adapter("MaxPool", 8, 1)
def no_indices_are_given(node: Node, out: Rewriter) -> None:
    """`storage_order` is about Indices only."""
    if out.is_used(node.output(1)):
        raise CannotConvert("output Indices is used, which MaxPool-1 does not have")
    out.become(node, outputs=node.outputs[:1], attributes=node.without("storage_order"))


@adapter("LpPool", 18, 11)
def norms_have_no_dilations(node: Node, out: Rewriter) -> None:
    """Dilated windows are gathered and summed; the padding that rounding up adds is stated."""
    if not _is_dilated(node):
        _without_rounding_up(node, out)
        return
    norm(node, placed_windows(node, out), out)


def _without_rounding_up(node: Node, out: Rewriter) -> None:
    attributes = node.without("ceil_mode", "dilations")
    windows = windows_of(node, out)
    if not node.attribute("ceil_mode", 0):
        out.become(node, attributes=attributes)
    elif _is_rounded_alike(node, windows):
        attributes.pop("auto_pad", None)
        out.become(node, attributes={**attributes, "pads": pads_to_round_down(windows)})
    else:
        _rounded_down(node, out)


def _is_rounded_alike(node: Node, windows: Sequence[Window]) -> bool:
    """Whether the size of the data is not known, and need not be: no window averages or is all padding."""
    if all(each.size is not None for each in windows) or any(each.same for each in windows):
        return False
    if node.op_type == "AveragePool" and node.attribute("count_include_pad", 0):
        return all(each.stride == 1 for each in windows)
    return not any(each.may_start_beyond or each.before >= each.kernel for each in windows)


def _rounded_down(node: Node, out: Rewriter) -> None:
    """State the padding that windows touch, which rounding down keeps; else gather them."""
    placed = placed_windows(node, out)
    averaged = node.op_type == "AveragePool" and bool(node.attribute("count_include_pad", 0))
    wider = any(each.after > each.window.after and not each.window.same for each in placed)
    long = any(max(each.before, each.after) >= each.window.kernel for each in placed)
    if (averaged and wider) or (long and not out.is_used(node.output(1))):
        REBUILT[node.op_type](node, placed, out)
        return
    attributes = node.without("ceil_mode", "pads", "auto_pad")
    if not _is_dilated(node):
        attributes.pop("dilations", None)
    out.become(node, attributes={**attributes, "pads": pads_of(placed)})


def _is_dilated(node: Node) -> bool:
    return any(each != 1 for each in node.attribute("dilations") or ())
