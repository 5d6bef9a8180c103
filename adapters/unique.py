"""Unique came at 11: before, every element, or slice, is compared with every other."""

from __future__ import annotations

from typing import NamedTuple

from opshift.adapters.casts import FLOATS, cast
from opshift.adapters.node import Node
from opshift.adapters.ranges import positions_below
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import computed_dimension, reshaped
from opshift.adapters.table import adapter

OPSET = 9
"""What comparisons are written for: the first opset that compares integers."""


class Table(NamedTuple):
    """1 or 0 in the row of an element and the column of another: if it is less, and if it is the same."""

    less: str
    same: str


@adapter("Unique", 11, 10)
def elements_are_compared(node: Node, out: Rewriter) -> None:
    """Of equal elements the earliest stands for all; how many of these come before it is its place."""
    axis = node.attribute("axis")
    rows = _rows(node.inputs[0], axis, out)
    numbers = positions_below(computed_dimension(rows, 0, out), out)
    table = _compared(rows, axis is not None, out)
    earliest = out.emit("ArgMax", [table.same], axis=0, keepdims=0)
    is_first = out.emit("Equal", [earliest, numbers])
    firsts = reshaped(out.emit("NonZero", [is_first]), (-1,), out)
    before = table.less if node.attribute("sorted", 1) else _earlier(numbers, earliest, out)
    those_before = out.emit("Gather", [before, firsts], axis=0)
    places = cast(out.emit("ReduceSum", [those_before], axes=[0], keepdims=0), "int64", out)
    indices = _in_order(firsts, places, out)
    _take(node.inputs[0], indices, axis, node.output(0), out)
    _name(indices, node.output(1), out)
    _name(places, node.output(2), out)
    if node.output(3):
        counts = cast(out.emit("ReduceSum", [table.same], axes=[0], keepdims=0), "int64", out)
        out.emit("Gather", [counts, indices], [node.output(3)], axis=0)


def _rows(data: str, axis: int | None, out: Rewriter) -> str:
    """What is compared, as one row for each."""
    element_type = out.element_type(data)
    if element_type not in FLOATS and "int" not in element_type:
        raise CannotConvert(
            f"{data!r} is {element_type}, of which no operator of opset 10 tells what is less"
        )
    if axis is None:
        return reshaped(data, (-1, 1), out)
    rank = out.rank(data)
    order = [axis % rank, *(place for place in range(rank) if place != axis % rank)]
    return out.emit("Flatten", [out.emit("Transpose", [data], perm=order)], axis=1)


def _compared(rows: str, are_long: bool, out: Rewriter) -> Table:
    """Rows of several elements are told apart by the first that differs."""
    sides = [out.emit("Unsqueeze", [rows], axes=[axis]) for axis in (1, 0)]
    below, above = (cast(out.emit(op, sides, opset=OPSET), "float", out) for op in ("Less", "Greater"))
    sign = out.emit("Sub", [below, above])
    if are_long:
        place = out.emit("ArgMax", [out.emit("Abs", [sign])], axis=2, keepdims=0)
        choice = out.constant([0.0, 1.0], "float")
        is_first = out.emit("OneHot", [place, computed_dimension(rows, 1, out), choice])
        sign = out.emit("Mul", [sign, is_first])
    order = out.emit("ReduceSum", [sign], axes=[2], keepdims=0)
    differs = out.emit("Abs", [order])
    return Table(out.emit("Relu", [order]), out.emit("Sub", [out.constant(1.0, "float"), differs]))


def _earlier(numbers: str, earliest: str, out: Rewriter) -> str:
    """Whether the row's element comes before the first that is the same as the column's."""
    is_earlier = out.emit("Less", [reshaped(numbers, (-1, 1), out), earliest], opset=OPSET)
    return cast(is_earlier, "float", out)


def _in_order(firsts: str, places: str, out: Rewriter) -> str:
    """The elements that stand for all, each in its place."""
    column = reshaped(positions_below(computed_dimension(firsts, 0, out), out), (-1, 1), out)
    is_here = out.emit("Equal", [column, out.emit("Gather", [places, firsts], axis=0)])
    which = out.emit("ArgMax", [cast(is_here, "float", out)], axis=1, keepdims=0)
    return out.emit("Gather", [firsts, which], axis=0)


def _take(data: str, indices: str, axis: int | None, name: str, out: Rewriter) -> None:
    if name:
        source = reshaped(data, (-1,), out) if axis is None else data
        rank = 1 if axis is None else out.rank(data)
        out.emit("Gather", [source, indices], [name], axis=(axis or 0) % rank)


def _name(value: str, name: str, out: Rewriter) -> None:
    if name:
        out.emit("Identity", [value], [name])
