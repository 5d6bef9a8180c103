"""Pooling as Gather and arithmetic: gather each element of a window for all windows at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from opshift.adapters.core.rewriter import Rewriter, rename_output
from opshift.adapters.emit.arithmetic import fold
from opshift.adapters.ops.nn.pooling_windows import Placed, pads_attribute
from opshift.model.node import Node, Tensor

OPSET = 8
"""Opset of the emitted nodes."""


def emit_max_pool(node: Node, placed: Sequence[Placed], out: Rewriter) -> None:
    """Emit the maximum of each window; padding elements are replaced by a data element of the same window."""
    out = out.for_opset(OPSET)
    data = node.inputs[0]
    for axis, each in enumerate(placed, 2):
        # One axis after the other: the maximum over a box is the maximum of the maxima along each axis.
        columns = list(zip(*(_data_elements(each, start) for start in range(each.window_count)), strict=True))
        data = _gather_and_combine("Max", data, axis, columns, out)
    rename_output(data, node, out)


def _data_elements(placed: Placed, start: int) -> list[int]:
    """Return the elements of a window, with those in the padding replaced by one in the data."""
    window = placed.window
    first = start * window.stride - placed.before
    elements = [first + tap * window.dilation for tap in range(window.kernel)]
    substitute = next(element for element in elements if 0 <= element < placed.size)
    return [element if 0 <= element < placed.size else substitute for element in elements]


def _gather_and_combine(
    op_type: str, data: str, axis: int, columns: Sequence[Sequence[int]], out: Rewriter
) -> str:
    parts = (out.emit("Gather", [data, out.int64(column)], axis=axis) for column in columns)
    return fold(op_type, parts, out)


def emit_average_pool(node: Node, placed: Sequence[Placed], out: Rewriter) -> None:
    """Emit the sum of each window divided by the number of its elements that count."""
    out = out.for_opset(OPSET)
    counts = _element_counts(node, placed)
    total = window_sums(node.inputs[0], placed, out)
    element_type = out.element_type(node.inputs[0])
    divisor = Tensor(element_type, (1, 1, *(each.window_count for each in placed)), tuple(counts))
    # A scalar divisor is smaller and equivalent.
    if len(set(counts)) == 1:
        divisor = Tensor(element_type, (), (counts[0],))
    out.emit("Div", [total, out.tensor(divisor)], node.outputs)


def _element_counts(node: Node, placed: Sequence[Placed]) -> list[int]:
    """Return, for each output position, the number of elements of the window that enter the average."""
    with_padding = bool(node.attribute("count_include_pad", 0))
    counts_by_axis = [
        [_count(each, start, with_padding) for start in range(each.window_count)] for each in placed
    ]
    return [prod(factors) for factors in product(*counts_by_axis)]


def _count(placed: Placed, start: int, with_padding: bool) -> int:
    window = placed.window
    first = start * window.stride - placed.before
    low, high = 0, placed.size
    if with_padding:
        after = placed.after if window.same_mode else window.after
        low, high = -placed.before, placed.size + after
    elements = (first + tap * window.dilation for tap in range(window.kernel))
    return sum(low <= element < high for element in elements)


def window_sums(data: str, placed: Sequence[Placed], out: Rewriter) -> str:
    """Return the sum of each window, with zeros as padding."""
    pads = pads_attribute(placed)
    if any(pads):
        rank = len(placed)
        data = out.emit("Pad", [data], opset=2, pads=[0, 0, *pads[:rank], 0, 0, *pads[rank:]])
    for axis, each in enumerate(placed, 2):
        window = each.window
        columns = [
            [start * window.stride + tap * window.dilation for start in range(each.window_count)]
            for tap in range(window.kernel)
        ]
        data = _gather_and_combine("Add", data, axis, columns, out)
    return data


def emit_lp_pool(node: Node, placed: Sequence[Placed], out: Rewriter) -> None:
    """Emit the p-norm of each window."""
    out = out.for_opset(OPSET)
    element_type = out.element_type(node.inputs[0])
    exponent = node.attribute("p", 2)
    data = out.emit("Abs", node.inputs[:1])
    powers = out.emit("Pow", [data, out.constant(float(exponent), element_type)])
    total = window_sums(powers, placed, out)
    inverse = out.constant(1 / exponent, element_type)
    out.emit("Pow", [total, inverse], node.outputs)
