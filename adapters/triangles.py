"""Trilu and EyeLike: places are told by the distance of column and row."""

from __future__ import annotations

import operator

from opshift.adapters.casts import cast
from opshift.adapters.node import Node, Tensor
from opshift.adapters.ranges import positions_below
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import as_list, dimension
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NUMBER

LONGEST = 1 << 22
"""The most elements of a mask that is written out as a constant."""


@adapter("Trilu", 14, 13)
def one_side_is_chosen(node: Node, out: Rewriter) -> None:
    """Where chooses between the data and zeros; And does for booleans."""
    data = node.inputs[0]
    element_type = out.element_type(data)
    outside = _outside(node, out)
    if element_type == "bool":
        out.emit("And", [data, out.emit("Not", [outside])], node.outputs)
        return
    zero = out.constant(_zero(element_type), element_type)
    out.emit("Where", [outside, zero, data], node.outputs, opset=16)


def _outside(node: Node, out: Rewriter) -> str:
    """A mask of the last two dimensions that is true where nothing is kept."""
    test, holds = ("Less", operator.lt) if node.attribute("upper", 1) else ("Greater", operator.gt)
    distances = _distances(node.inputs[0], out)
    limit = out.constant_value(node.input(1)) if node.input(1) else Tensor("int64", (), (0,))
    if limit and isinstance(distances, Tensor):
        mask = tuple(holds(each, limit.values[0]) for each in distances.values)
        return out.tensor(Tensor("bool", distances.dims, mask))
    bound = cast(node.input(1), "float", out) if node.input(1) else out.constant(0.0, "float")
    return out.emit(test, [out.tensor(distances) if isinstance(distances, Tensor) else distances, bound])


def _distances(data: str, out: Rewriter) -> Tensor | str:
    """Column less row, in floats: they hold them, and are all that comparisons take before 9."""
    rank = out.rank(data)
    rows, columns = (dimension(data, rank - place, out) for place in (2, 1))
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= LONGEST:
        known = tuple(column - row for row in range(rows) for column in range(columns))
        return Tensor("float", (rows, columns), known)
    across, down = (positions_below(as_list(size, out), out) for size in (columns, rows))
    distance = out.emit("Sub", [across, out.emit("Reshape", [down, out.constant([-1, 1], "int64")])])
    return cast(distance, "float", out)


def _zero(element_type: str) -> int | float | bytes:
    if element_type == "string":
        return b""
    return 0 if "int" in element_type else 0.0


@adapter("EyeLike", 9, 8)
def matrix_is_written_out(node: Node, out: Rewriter) -> None:
    """The matrix is a constant where its size is known."""
    shape = out.shape(node.inputs[0])
    if shape is None or None in shape:
        raise CannotConvert(
            f"the shape of {node.inputs[0]!r} is not known", remedy="state it, or convert to opset 9 or later"
        )
    rows, columns = shape
    number, k = node.attribute("dtype"), node.attribute("k", 0)
    element_type = BY_NUMBER[number].name if number else out.element_type(node.inputs[0])
    values = [column - row == k for row in range(rows or 0) for column in range(columns or 0)]
    of = bool if element_type == "bool" else int if "int" in element_type else float
    value = Tensor(element_type, (rows or 0, columns or 0), tuple(map(of, values)))
    out.become(node, op_type="Identity", inputs=[out.tensor(value)], attributes={})
