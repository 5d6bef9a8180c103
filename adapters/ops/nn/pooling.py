"""Pooling: rounding, dilations and padding of windows, and the type of the exponent of LpPool."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.adapters.ops.nn.dilated_pooling import emit_average_pool, emit_lp_pool, emit_max_pool
from opshift.adapters.ops.nn.pooling_windows import (
    PoolWindow,
    pads_attribute,
    pads_to_round_down,
    place_windows,
    read_windows,
)
from opshift.model.errors import CannotConvert
from opshift.model.node import Node

EXPANSIONS = {"AveragePool": emit_average_pool, "MaxPool": emit_max_pool, "LpPool": emit_lp_pool}
"""Function that expands an operator into Gather and arithmetic."""


@adapter(("LpPool", "GlobalLpPool"), 1, 2)
def convert_p_to_int(node: Node, out: Rewriter) -> None:
    """Convert `p` to an integer; refuse fractions and a missing `kernel_shape`."""
    if node.op_type == "LpPool" and "kernel_shape" not in node.attributes:
        raise CannotConvert("kernel_shape is missing, but LpPool-2 requires it", remedy="set kernel_shape")
    exponent = float(node.attribute("p", 2.0))
    if not exponent.is_integer():
        raise CannotConvert(f"p is {exponent}; since version 2 it must be an integer")
    out.replace(node, attributes={**node.without("p"), "p": int(exponent)})


@adapter("AveragePool", 22, 19)
@adapter("MaxPool", 22, 12)
@adapter("LpPool", 22, 18)
def exclude_padding_windows(node: Node, out: Rewriter) -> None:
    """Replace `ceil_mode` by explicit padding if a window may hold only padding, which version 22 omits."""
    windows = read_windows(node, out)
    if not any(each.may_start_past_data for each in windows):
        out.replace(node)
        return
    _replace_ceil_mode(node, out)


@adapter("AveragePool", 19, 11)
def expand_dilated_average(node: Node, out: Rewriter) -> None:
    """Rewrite dilated windows as Gather and a sum."""
    if not _is_dilated(node):
        out.replace(node, attributes=node.without("dilations"))
        return
    emit_average_pool(node, place_windows(node, out), out)


@adapter("LpPool", 18, 11)
def expand_dilated_norm(node: Node, out: Rewriter) -> None:
    """Rewrite dilated windows as Gather and a sum; replace `ceil_mode` by explicit padding."""
    if not _is_dilated(node):
        _drop_ceil_mode(node, out)
        return
    emit_lp_pool(node, place_windows(node, out), out)


@adapter("AveragePool", 10, 7)
def drop_average_ceil_mode(node: Node, out: Rewriter) -> None:
    """Replace `ceil_mode` by explicit padding, or by Gather if the added padding would be averaged."""
    _drop_ceil_mode(node, out)


@adapter("MaxPool", 10, 8)
def expand_dilated_max(node: Node, out: Rewriter) -> None:
    """Rewrite dilated windows as Gather and Max; replace `ceil_mode` by explicit padding."""
    if not _is_dilated(node):
        _drop_ceil_mode(node, out)
        return
    if out.is_used(node.output(1)):
        raise CannotConvert("output Indices is used, but dilated windows are rewritten without it")
    emit_max_pool(node, place_windows(node, out), out)


@adapter("MaxPool", 8, 1)
def drop_indices(node: Node, out: Rewriter) -> None:
    """Drop `storage_order`, which only affects Indices; refuse Indices in use."""
    if out.is_used(node.output(1)):
        raise CannotConvert("output Indices is used, but MaxPool-1 does not have it")
    out.replace(node, outputs=node.outputs[:1], attributes=node.without("storage_order"))


@adapter("AveragePool", 7, 1)
def pad_before_average(node: Node, out: Rewriter) -> None:
    """Emit an explicit Pad if `count_include_pad` is set."""
    attributes = node.without("count_include_pad")
    windows = read_windows(node, out)
    padded = any(each.before or each.after or each.same_mode for each in windows)
    if not node.attribute("count_include_pad", 0) or not padded:
        out.replace(node, attributes=attributes)
        return
    pads = [each.before for each in windows] + [each.after for each in windows]
    if windows[0].same_mode:
        pads = pads_attribute(place_windows(node, out))
    rank = len(windows)
    data = out.emit("Pad", [node.inputs[0]], opset=2, pads=[0, 0, *pads[:rank], 0, 0, *pads[rank:]])
    for name in ("pads", "auto_pad"):
        attributes.pop(name, None)
    out.replace(node, inputs=[data], attributes=attributes)


@adapter(("LpPool", "GlobalLpPool"), 2, 1)
def convert_p_to_float(node: Node, out: Rewriter) -> None:
    """Convert `p` to a float."""
    out.replace(node, attributes={**node.without("p"), "p": float(node.attribute("p", 2))})


def _replace_ceil_mode(node: Node, out: Rewriter) -> None:
    """Declare the padding that windows touch, so rounding down keeps all windows; otherwise use Gather."""
    placed = place_windows(node, out)
    counts_padding = node.op_type == "AveragePool" and bool(node.attribute("count_include_pad", 0))
    adds_padding = any(each.after > each.window.after and not each.window.same_mode for each in placed)
    is_too_long = any(max(each.before, each.after) >= each.window.kernel for each in placed)
    # Added padding must not enter an average, and runtimes refuse padding as long as the kernel.
    if (counts_padding and adds_padding) or (is_too_long and not out.is_used(node.output(1))):
        EXPANSIONS[node.op_type](node, placed, out)
        return
    attributes = node.without("ceil_mode", "pads", "auto_pad")
    if not _is_dilated(node):
        attributes.pop("dilations", None)
    out.replace(node, attributes={**attributes, "pads": pads_attribute(placed)})


def _is_dilated(node: Node) -> bool:
    return any(dilation != 1 for dilation in node.attribute("dilations") or ())


def _drop_ceil_mode(node: Node, out: Rewriter) -> None:
    attributes = node.without("ceil_mode", "dilations")
    windows = read_windows(node, out)
    if not node.attribute("ceil_mode", 0):
        out.replace(node, attributes=attributes)
    elif _can_round_down(node, windows):
        attributes.pop("auto_pad", None)
        out.replace(node, attributes={**attributes, "pads": pads_to_round_down(windows)})
    else:
        _replace_ceil_mode(node, out)


def _can_round_down(node: Node, windows: Sequence[PoolWindow]) -> bool:
    """Return whether larger padding replaces `ceil_mode` for data of unknown size.

    It does if no window averages padding or consists of padding alone.
    """
    if all(window.size is not None for window in windows) or any(window.same_mode for window in windows):
        return False
    if node.op_type == "AveragePool" and node.attribute("count_include_pad", 0):
        return all(window.stride == 1 for window in windows)
    return not any(window.may_start_past_data or window.before >= window.kernel for window in windows)
