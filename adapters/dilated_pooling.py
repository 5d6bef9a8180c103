"""Pooling as Gather and arithmetic: every element of a window is gathered for all windows at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from opshift.adapters.finishing import finish
from opshift.adapters.node import Node, Tensor
from opshift.adapters.pool_windows import Placed, pads_of
from opshift.adapters.rewriter import Rewriter

OPSET = 8
"""What the nodes are written for."""


def largest(node: Node, placed: Sequence[Placed], out: Rewriter) -> None:
    """The maximum; elements in the padding are replaced by another of the same window."""
    data = node.inputs[0]
    for axis, each in enumerate(placed, 2):
        columns = list(zip(*(_inside(each, start) for start in range(each.length)), strict=True))
        data = _combined("Max", data, axis, columns, out)
    finish(data, node, out)


def average(node: Node, placed: Sequence[Placed], out: Rewriter) -> None:
    """The sum of each window over the number of elements that count."""
    counts = _counts(node, placed)
    total = window_sums(node.inputs[0], placed, out)
    element_type = out.element_type(node.inputs[0])
    divisor = Tensor(element_type, (1, 1, *(each.length for each in placed)), tuple(counts))
    if len(set(counts)) == 1:
        divisor = Tensor(element_type, (), (counts[0],))
    out.emit("Div", [total, out.tensor(divisor)], node.outputs, opset=OPSET)


def norm(node: Node, placed: Sequence[Placed], out: Rewriter) -> None:
    """The p-norm of each window."""
    element_type = out.element_type(node.inputs[0])
    exponent = node.attribute("p", 2)
    data = out.emit("Abs", node.inputs[:1], opset=OPSET)
    powers = out.emit("Pow", [data, out.constant(float(exponent), element_type)], opset=OPSET)
    total = window_sums(powers, placed, out)
    inverse = out.constant(1 / exponent, element_type)
    out.emit("Pow", [total, inverse], node.outputs, opset=OPSET)


def window_sums(data: str, placed: Sequence[Placed], out: Rewriter) -> str:
    """The sum of each window, zeros standing in the padding."""
    pads = pads_of(placed)
    if any(pads):
        rank = len(placed)
        data = out.emit("Pad", [data], opset=2, pads=[0, 0, *pads[:rank], 0, 0, *pads[rank:]])
    for axis, each in enumerate(placed, 2):
        window = each.window
        columns = [
            [start * window.stride + tap * window.dilation for start in range(each.length)]
            for tap in range(window.kernel)
        ]
        data = _combined("Add", data, axis, columns, out)
    return data


def _combined(op_type: str, data: str, axis: int, columns: Sequence[Sequence[int]], out: Rewriter) -> str:
    total = ""
    for column in columns:
        part = out.emit("Gather", [data, out.constant(column, "int64")], opset=OPSET, axis=axis)
        total = out.emit(op_type, [total, part], opset=OPSET) if total else part
    return total


def _inside(placed: Placed, start: int) -> list[int]:
    """The elements of a window; for one in the padding stands one that is not."""
    window = placed.window
    first = start * window.stride - placed.before
    elements = [first + tap * window.dilation for tap in range(window.kernel)]
    spare = next(each for each in elements if 0 <= each < placed.size)
    return [each if 0 <= each < placed.size else spare for each in elements]


def _counts(node: Node, placed: Sequence[Placed]) -> list[int]:
    """By output position: how many elements of the window enter the average."""
    stated = bool(node.attribute("count_include_pad", 0))
    along = [[_count(each, start, stated) for start in range(each.length)] for each in placed]
    found = []
    for factors in product(*along):
        count = 1
        for factor in factors:
            count *= factor
        found.append(count)
    return found


def _count(placed: Placed, start: int, with_padding: bool) -> int:
    window = placed.window
    first = start * window.stride - placed.before
    low, high = 0, placed.size
    if with_padding:
        after = placed.after if window.same else window.after
        low, high = -placed.before, placed.size + after
    elements = (first + tap * window.dilation for tap in range(window.kernel))
    return sum(low <= each < high for each in elements)
