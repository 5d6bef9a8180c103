"""CumSum and CumProd: each element has taken up all before it after a few rounds of doubled distance."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.casts import cast
from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.running_in_turn import accumulated_in_turn
from opshift.adapters.table import adapter


@adapter("CumSum", 11, 10)
def sums_over_doubled_distances(node: Node, out: Rewriter) -> None:
    """Every round adds what is 1, 2, 4 and so on places before; as many rounds as double up to the size."""
    _accumulate(node, "Add", 0, out)


@adapter("CumProd", 26, 25)
def products_over_doubled_distances(node: Node, out: Rewriter) -> None:
    """Every round multiplies by what is 1, 2, 4 and so on places before."""
    _accumulate(node, "Mul", 1, out)


def _accumulate(node: Node, op_type: str, neutral: int, out: Rewriter) -> None:
    """Along the axis; if that is computed, along each, of which the axis chooses."""
    rank = out.rank(node.inputs[0])
    axis = out.constant_value(node.inputs[1])
    if axis is not None or rank == 1:
        place = int(axis.values[0]) % rank if axis is not None else 0
        out.emit("Identity", [_along(place, node, op_type, neutral, out)], node.outputs)
        return
    front = out.constant([1], "int64"), out.emit("Shape", [node.inputs[0]])
    shape = out.emit("Concat", front, axis=0)
    found = [_along(place, node, op_type, neutral, out) for place in range(rank)]
    every = out.emit("Concat", [out.emit("Reshape", [value, shape]) for value in found], axis=0)
    number = out.emit("Reshape", [cast(node.inputs[1], "int64", out), out.constant([], "int64")])
    out.emit("Gather", [every, out.emit("Mod", [number, out.constant(rank, "int64")])], node.outputs, axis=0)


def _along(axis: int, node: Node, op_type: str, neutral: int, out: Rewriter) -> str:
    """What each element of one dimension has taken up."""
    value = node.inputs[0]
    shape = out.shape(value)
    size = shape[axis] if shape is not None else None
    if size is None:
        return accumulated_in_turn(axis, node, op_type, neutral, out)
    line = _Line(axis, size, bool(node.attribute("reverse", 0)), out)
    if node.attribute("exclusive", 0) and size:
        first = _filled_as(line.first(value, 1), neutral, out.element_type(value), out)
        value = line.joined(first, line.without_last(value, 1))
    distance = 1
    while distance < size:
        added = out.emit(op_type, [line.without_first(value, distance), line.without_last(value, distance)])
        value = line.joined(line.first(value, distance), added)
        distance *= 2
    return value


class _Line:
    """A dimension in the direction that is accumulated: its parts, and how they are put together."""

    def __init__(self, axis: int, size: int, backwards: bool, out: Rewriter) -> None:
        self._axis, self._size, self._backwards, self._out = axis, size, backwards, out

    def first(self, value: str, count: int) -> str:
        """As many elements from where the line begins."""
        return self._part(value, 0, count)

    def without_first(self, value: str, count: int) -> str:
        """All but as many elements where the line begins."""
        return self._part(value, count, self._size)

    def without_last(self, value: str, count: int) -> str:
        """All but as many elements where the line ends."""
        return self._part(value, 0, self._size - count)

    def joined(self, begin: str, end: str) -> str:
        """Two parts behind each other."""
        parts = [end, begin] if self._backwards else [begin, end]
        return self._out.emit("Concat", parts, axis=self._axis)

    def _part(self, value: str, start: int, end: int) -> str:
        if self._backwards:
            start, end = self._size - end, self._size - start
        bounds: Sequence[int] = (start, end, self._axis)
        return self._out.emit("Slice", [value, *(self._out.constant([each], "int64") for each in bounds)])


def _filled_as(value: str, number: int, element_type: str, out: Rewriter) -> str:
    """A tensor of the same shape that holds one number."""
    filling = Tensor(element_type, (1,), (number,))
    return out.emit("ConstantOfShape", [out.emit("Shape", [value])], value=filling)
