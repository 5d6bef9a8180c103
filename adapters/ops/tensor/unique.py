"""Unique (introduced in opset 11), as a comparison of all pairs of elements or slices."""

from __future__ import annotations

from typing import NamedTuple

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.adapters.emit.cast import FLOAT_TYPES, cast
from opshift.adapters.emit.shapes import computed_dimension, index_range, reshape
from opshift.model.errors import CannotConvert
from opshift.model.node import Node

COMPARISON_OPSET = 9
"""Opset of the emitted comparisons: the first that compares integers."""


class UniqueTable(NamedTuple):
    """Names of two square matrices of ones and zeros that compare the row element with the column element.

    Attributes:
        less: 1 where the row element is less than the column element.
        same: 1 where the two are equal.
    """

    less: str
    same: str


@adapter("Unique", 11, 10)
def compare_all_pairs(node: Node, out: Rewriter) -> None:
    """Compare all elements pairwise, select the first of equal elements, and count how many precede it."""
    axis = node.attribute("axis")
    rows = _rows(node.inputs[0], axis, out)
    numbers = index_range(computed_dimension(rows, 0, out), out)
    table = _compare(rows, axis is not None, out)
    earliest = out.emit("ArgMax", [table.same], axis=0, keepdims=0)
    is_first = out.emit("Equal", [earliest, numbers])
    firsts = reshape(out.emit("NonZero", [is_first]), (-1,), out)
    precedes = table.less if node.attribute("sorted", 1) else _is_earlier(numbers, earliest, out)
    # The output position of an element is the number of distinct elements that precede it.
    firsts_before = out.emit("Gather", [precedes, firsts], axis=0)
    positions = cast(out.emit("ReduceSum", [firsts_before], axes=[0], keepdims=0), "int64", out)
    indices = _in_output_order(firsts, positions, out)
    _gather_values(node.inputs[0], indices, axis, node.output(0), out)
    _emit_output(indices, node.output(1), out)
    _emit_output(positions, node.output(2), out)
    if node.output(3):
        counts = cast(out.emit("ReduceSum", [table.same], axes=[0], keepdims=0), "int64", out)
        out.emit("Gather", [counts, indices], [node.output(3)], axis=0)


def _rows(data: str, axis: int | None, out: Rewriter) -> str:
    """Return a matrix with one row for each element, or for each slice along the axis.

    Raises:
        CannotConvert: No operator compares the element type.
    """
    element_type = out.element_type(data)
    if element_type not in FLOAT_TYPES and "int" not in element_type:
        raise CannotConvert(
            f"{data!r} has element type {element_type}, which the operator Less does not support"
        )
    if axis is None:
        return reshape(data, (-1, 1), out)
    rank = out.rank(data)
    order = [axis % rank, *(other for other in range(rank) if other != axis % rank)]
    return out.emit("Flatten", [out.emit("Transpose", [data], perm=order)], axis=1)


def _compare(rows: str, has_columns: bool, out: Rewriter) -> UniqueTable:
    """Compare each row with every other; rows of several elements compare by their first difference."""
    sides = [out.emit("Unsqueeze", [rows], axes=[axis]) for axis in (1, 0)]
    below, above = (
        cast(out.emit(op, sides, opset=COMPARISON_OPSET), "float", out) for op in ("Less", "Greater")
    )
    sign = out.emit("Sub", [below, above])
    if has_columns:
        # Keep only the sign of the first column that differs.
        column = out.emit("ArgMax", [out.emit("Abs", [sign])], axis=2, keepdims=0)
        choice = out.constant([0.0, 1.0], "float")
        is_first = out.emit("OneHot", [column, computed_dimension(rows, 1, out), choice])
        sign = out.emit("Mul", [sign, is_first])
    order = out.emit("ReduceSum", [sign], axes=[2], keepdims=0)
    differs = out.emit("Abs", [order])
    return UniqueTable(out.emit("Relu", [order]), out.emit("Sub", [out.constant(1.0, "float"), differs]))


def _is_earlier(numbers: str, earliest: str, out: Rewriter) -> str:
    """Return 1 where the row element comes before the first element that equals the column element."""
    is_earlier = out.emit("Less", [reshape(numbers, (-1, 1), out), earliest], opset=COMPARISON_OPSET)
    return cast(is_earlier, "float", out)


def _in_output_order(firsts: str, positions: str, out: Rewriter) -> str:
    """Return the indices of the distinct elements in the order of the output."""
    column = reshape(index_range(computed_dimension(firsts, 0, out), out), (-1, 1), out)
    is_here = out.emit("Equal", [column, out.emit("Gather", [positions, firsts], axis=0)])
    order = out.emit("ArgMax", [cast(is_here, "float", out)], axis=1, keepdims=0)
    return out.emit("Gather", [firsts, order], axis=0)


def _gather_values(data: str, indices: str, axis: int | None, name: str, out: Rewriter) -> None:
    if name:
        source = reshape(data, (-1,), out) if axis is None else data
        rank = 1 if axis is None else out.rank(data)
        out.emit("Gather", [source, indices], [name], axis=(axis or 0) % rank)


def _emit_output(value: str, name: str, out: Rewriter) -> None:
    if name:
        out.emit("Identity", [value], [name])
