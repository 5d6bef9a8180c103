"""Attention: positions of queries and keys in the whole sequence, including past keys and padding."""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.ranges import LONGEST, positions_below
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import Size, as_list, dimension, reshaped, total
from opshift.registry.element_types import BY_NAME

FLOAT = BY_NAME["float"].number


def distance(node: Node, out: Rewriter) -> str:
    """Return the key position minus the query position, as float.

    The last two dimensions of the result are queries and keys. With `nonpad_kv_seqlen`, the last query has
    the position of the last unpadded key.
    """
    queries, lengths, past = _sequence_length(node, 0, out), node.input(6), node.input(4)
    if not lengths:
        offset = dimension(past, 2, out) if past else 0
        return out.emit(
            "Sub", [positions(key_length(node, out), out), _position_column(queries, offset, out)]
        )
    keys = out.emit("Sub", [positions(key_length(node, out), out), _position_column(queries, 0, out)])
    ends = reshaped(out.emit("Cast", [lengths], to=FLOAT), (-1, 1, 1, 1), out)
    first = out.emit("Sub", [ends, _as_float(queries, out)])
    return out.emit("Sub", [keys, first])


def key_length(node: Node, out: Rewriter) -> Size:
    """Return the number of keys, past ones included."""
    new, past = _sequence_length(node, 1, out), node.input(4)
    return total(dimension(past, 2, out), new, out) if past else new


def positions(length: Size, out: Rewriter) -> str:
    """Return 0, 1, 2 and so on as float; a constant if the length is known and short."""
    if isinstance(length, int) and length <= LONGEST:
        return out.constant(tuple(map(float, range(length))), "float")
    return out.emit("Cast", [positions_below(as_list(length, out), out)], to=FLOAT)


def _sequence_length(node: Node, position: int, out: Rewriter) -> Size:
    """Return the number of queries or of new keys."""
    return dimension(node.inputs[position], out.rank(node.inputs[position]) - 2, out)


def _position_column(length: Size, offset: Size, out: Rewriter) -> str:
    """Return the positions from an offset onwards, one per row."""
    if isinstance(length, int) and isinstance(offset, int) and length <= LONGEST:
        numbers = tuple(float(offset + index) for index in range(length))
        return out.tensor(Tensor("float", (length, 1), numbers))
    column = reshaped(positions(length, out), (-1, 1), out)
    return out.emit("Add", [column, _as_float(offset, out)])


def _as_float(size: Size, out: Rewriter) -> str:
    if isinstance(size, int):
        return out.constant(float(size), "float")
    return out.emit("Cast", [size], to=FLOAT)
