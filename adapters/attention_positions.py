"""Attention: where queries and keys lie in the whole sequence, past keys and padding considered."""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.ranges import LONGEST, positions_below
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import Size, as_list, dimension, reshaped, total
from opshift.registry.element_types import BY_NAME

FLOAT = BY_NAME["float"].number


def distance(node: Node, out: Rewriter) -> str:
    """How far a key lies after a query: the last two dimensions are queries and keys."""
    queries, lengths, past = _length(node, 0, out), node.input(6), node.input(4)
    if not lengths:
        offset = dimension(past, 2, out) if past else 0
        return out.emit("Sub", [positions(key_length(node, out), out), _column(queries, offset, out)])
    keys = out.emit("Sub", [positions(key_length(node, out), out), _column(queries, 0, out)])
    ends = reshaped(out.emit("Cast", [lengths], to=FLOAT), (-1, 1, 1, 1), out)
    first = out.emit("Sub", [ends, _as_float(queries, out)])
    return out.emit("Sub", [keys, first])


def key_length(node: Node, out: Rewriter) -> Size:
    """How many keys there are, past ones included."""
    new, past = _length(node, 1, out), node.input(4)
    return total(dimension(past, 2, out), new, out) if past else new


def positions(length: Size, out: Rewriter) -> str:
    """0, 1, 2 and so on, as float."""
    if isinstance(length, int) and length <= LONGEST:
        return out.constant(tuple(map(float, range(length))), "float")
    return out.emit("Cast", [positions_below(as_list(length, out), out)], to=FLOAT)


def _length(node: Node, position: int, out: Rewriter) -> Size:
    """How many queries, or new keys, there are."""
    return dimension(node.inputs[position], out.rank(node.inputs[position]) - 2, out)


def _column(length: Size, offset: Size, out: Rewriter) -> str:
    """The positions from an offset on, one a row."""
    if isinstance(length, int) and isinstance(offset, int) and length <= LONGEST:
        numbers = tuple(float(offset + index) for index in range(length))
        return out.tensor(Tensor("float", (length, 1), numbers))
    column = reshaped(positions(length, out), (-1, 1), out)
    return out.emit("Add", [column, _as_float(offset, out)])


def _as_float(size: Size, out: Rewriter) -> str:
    if isinstance(size, int):
        return out.constant(float(size), "float")
    return out.emit("Cast", [size], to=FLOAT)
