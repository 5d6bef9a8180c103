"""Pooling: rounding, dilations and padding of windows, and the type of the exponent of LpPool."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.adapters.ops.nn.dilated_pooling import average, largest, norm
from opshift.adapters.ops.nn.pooling_windows import (
    Window,
    pads_of,
    pads_to_round_down,
    placed_windows,
    windows_of,
)
from opshift.model.errors import CannotConvert
from opshift.model.node import Node

REBUILT = {"AveragePool": average, "MaxPool": largest, "LpPool": norm}
"""Function that expands an operator into Gather and arithmetic."""


@adapter(("LpPool", "GlobalLpPool"), 1, 2)
def exponent_becomes_whole(node: Node, out: Rewriter) -> None:
    """Convert `p` to an integer; refuse fractions and a missing `kernel_shape`."""
    if node.op_type == "LpPool" and "kernel_shape" not in node.attributes:
        raise CannotConvert("kernel_shape is missing, but LpPool-2 requires it", remedy="set kernel_shape")
    exponent = float(node.attribute("p", 2.0))
    if not exponent.is_integer():
        raise CannotConvert(f"p is {exponent}; since version 2 it must be an integer")
    out.become(node, attributes={**node.without("p"), "p": int(exponent)})


@adapter(("LpPool", "GlobalLpPool"), 2, 1)
def exponent_is_a_float(node: Node, out: Rewriter) -> None:
    """Convert `p` to a float."""
    out.become(node, attributes={**node.without("p"), "p": float(node.attribute("p", 2))})


@adapter("AveragePool", 22, 19)
@adapter("MaxPool", 22, 12)
@adapter("LpPool", 22, 18)
def last_window_may_start_in_the_padding(node: Node, out: Rewriter) -> None:
    """Replace `ceil_mode` by explicit padding if a window may hold only padding, which version 22 omits."""
    windows = windows_of(node, out)
    if not any(each.may_start_beyond for each in windows):
        out.become(node)
        return
    _replace_ceil_mode(node, out)


@adapter("AveragePool", 19, 11)
def averages_have_no_dilations(node: Node, out: Rewriter) -> None:
    """Rewrite dilated windows as Gather and a sum."""
    if not _is_dilated(node):
        out.become(node, attributes=node.without("dilations"))
        return
    average(node, placed_windows(node, out), out)


@adapter("AveragePool", 10, 7)
def averages_round_down(node: Node, out: Rewriter) -> None:
    """Replace `ceil_mode` by explicit padding, or by Gather if the added padding would be averaged."""
    _drop_ceil_mode(node, out)


@adapter("AveragePool", 7, 1)
def padding_is_never_averaged(node: Node, out: Rewriter) -> None:
    """Emit an explicit Pad if `count_include_pad` is set."""
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
    """Rewrite dilated windows as Gather and Max; replace `ceil_mode` by explicit padding."""
    if not _is_dilated(node):
        _drop_ceil_mode(node, out)
        return
    if out.is_used(node.output(1)):
        raise CannotConvert("output Indices is used, but dilated windows are rewritten without it")
    largest(node, placed_windows(node, out), out)


@adapter("MaxPool", 8, 1)
def no_indices_are_given(node: Node, out: Rewriter) -> None:
    """Drop `storage_order`, which only affects Indices; refuse Indices in use."""
    if out.is_used(node.output(1)):
        raise CannotConvert("output Indices is used, but MaxPool-1 does not have it")
    out.become(node, outputs=node.outputs[:1], attributes=node.without("storage_order"))


@adapter("LpPool", 18, 11)
def norms_have_no_dilations(node: Node, out: Rewriter) -> None:
    """Rewrite dilated windows as Gather and a sum; replace `ceil_mode` by explicit padding."""
    if not _is_dilated(node):
        _drop_ceil_mode(node, out)
        return
    norm(node, placed_windows(node, out), out)


def _drop_ceil_mode(node: Node, out: Rewriter) -> None:
    attributes = node.without("ceil_mode", "dilations")
    windows = windows_of(node, out)
    if not node.attribute("ceil_mode", 0):
        out.become(node, attributes=attributes)
    elif _can_round_down(node, windows):
        attributes.pop("auto_pad", None)
        out.become(node, attributes={**attributes, "pads": pads_to_round_down(windows)})
    else:
        _replace_ceil_mode(node, out)


def _can_round_down(node: Node, windows: Sequence[Window]) -> bool:
    """Return whether larger padding replaces `ceil_mode` for data of unknown size.

    It does if no window averages padding or consists of padding alone.
    """
    if all(window.size is not None for window in windows) or any(window.same for window in windows):
        return False
    if node.op_type == "AveragePool" and node.attribute("count_include_pad", 0):
        return all(window.stride == 1 for window in windows)
    return not any(window.may_start_beyond or window.before >= window.kernel for window in windows)


def _replace_ceil_mode(node: Node, out: Rewriter) -> None:
    """Declare the padding that windows touch, so rounding down keeps all windows; otherwise use Gather."""
    placed = placed_windows(node, out)
    counts_padding = node.op_type == "AveragePool" and bool(node.attribute("count_include_pad", 0))
    adds_padding = any(each.after > each.window.after and not each.window.same for each in placed)
    is_too_long = any(max(each.before, each.after) >= each.window.kernel for each in placed)
    # Added padding must not enter an average, and runtimes refuse padding as long as the kernel.
    if (counts_padding and adds_padding) or (is_too_long and not out.is_used(node.output(1))):
        REBUILT[node.op_type](node, placed, out)
        return
    attributes = node.without("ceil_mode", "pads", "auto_pad")
    if not _is_dilated(node):
        attributes.pop("dilations", None)
    out.become(node, attributes={**attributes, "pads": pads_of(placed)})


def _is_dilated(node: Node) -> bool:
    return any(dilation != 1 for dilation in node.attribute("dilations") or ())
