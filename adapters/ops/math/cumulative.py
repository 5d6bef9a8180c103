"""CumSum and CumProd as scans that combine elements at distances 1, 2, 4 and so on."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.cast import cast
from opshift.adapters.emit.shapes import computed_dimension, reshape
from opshift.adapters.emit.subgraphs import LoopBuilder


@adapter("CumSum", 11, 10)
def expand_cumsum(node: Node, out: Rewriter) -> None:
    """Repeatedly add partial sums shifted by 1, 2, 4, ... positions, up to the size of the axis."""
    _accumulate(node, "Add", 0, out)


def _accumulate(node: Node, op_type: str, neutral: int, out: Rewriter) -> None:
    """Accumulate along the axis; along a computed axis, accumulate along all and select one result."""
    rank = out.rank(node.inputs[0])
    axis = out.constant_value(node.inputs[1])
    if axis is not None or rank == 1:
        index = int(axis.values[0]) % rank if axis is not None else 0
        out.emit("Identity", [_accumulate_along(index, node, op_type, neutral, out)], node.outputs)
        return
    parts = out.int64([1]), out.emit("Shape", [node.inputs[0]])
    shape = out.emit("Concat", parts, axis=0)
    results = [_accumulate_along(index, node, op_type, neutral, out) for index in range(rank)]
    # Each result gets a leading dimension of size 1, along which Gather selects one of them.
    stacked = out.emit("Concat", [out.emit("Reshape", [value, shape]) for value in results], axis=0)
    computed_axis = reshape(cast(node.inputs[1], "int64", out), (), out)
    out.emit(
        "Gather",
        [stacked, out.emit("Mod", [computed_axis, out.int64(rank)])],
        node.outputs,
        axis=0,
    )


def _accumulate_along(axis: int, node: Node, op_type: str, neutral: int, out: Rewriter) -> str:
    """Return the running sums or products along one axis."""
    value = node.inputs[0]
    size = out.known_dimension(value, axis)
    if size is None:
        # The number of rounds depends on the size: a Loop handles an unknown one.
        return accumulate_in_loop(axis, node, op_type, neutral, out)
    dimension = _Dimension(axis, size, bool(node.attribute("reverse", 0)), out)
    # An exclusive scan is an inclusive one of the input shifted by one position.
    if node.attribute("exclusive", 0) and size:
        head = _full_like(dimension.head(value, 1), neutral, out.element_type(value), out)
        value = dimension.join(head, dimension.drop_tail(value, 1))
    distance = 1
    while distance < size:
        combined = out.emit(
            op_type, [dimension.drop_head(value, distance), dimension.drop_tail(value, distance)]
        )
        value = dimension.join(dimension.head(value, distance), combined)
        distance *= 2
    return value


def accumulate_in_loop(axis: int, node: Node, op_type: str, neutral: int, out: Rewriter) -> str:
    """Return the running sums or products along one axis, accumulated by a Loop.

    Args:
        axis: the dimension to accumulate along, not negative.
        node: the CumSum or CumProd, with its attributes `reverse` and `exclusive`.
        op_type: the operator that combines two elements: Add or Mul.
        neutral: the neutral element of `op_type`: 0 or 1.
        out: receives the emitted nodes.
    """
    value = node.inputs[0]
    size = computed_dimension(value, axis, out)
    reverse = bool(node.attribute("reverse", 0))
    exclusive = bool(node.attribute("exclusive", 0))
    rank = out.rank(value)
    other_axes = [each for each in range(rank) if each != axis]
    dims, element_type = (None,) * len(other_axes), out.element_type(value)

    body = LoopBuilder(out)
    previous = body.input(element_type, dims)
    index = body.iteration
    if reverse:
        count = reshape(size, (), out)
        last = out.emit("Sub", [count, out.int64(1)])
        index = body.emit("Sub", [last, body.iteration])
    total = body.emit(op_type, [previous, body.emit("Gather", [value, index], axis=axis)])
    body.output(total, element_type, dims)
    body.output(body.emit("Identity", [previous if exclusive else total]), element_type, dims)
    body.output(body.emit("Identity", [index]), "int64", ())

    shape = out.emit("Gather", [out.emit("Shape", [value]), out.int64(other_axes)], axis=0)
    start = out.emit("ConstantOfShape", [shape], value=Tensor(element_type, (1,), (neutral,)))
    names = [out.fresh("total"), out.fresh("rows"), out.fresh("places")]
    _, rows, indices = body.emit_loop(size, [start], out, names)
    if reverse:
        # The Loop stacks its results from the last element to the first: gathering by the reversed indices
        # restores their order.
        rows = out.emit("Gather", [rows, indices], axis=0)
    # The Loop stacks its results along dimension 0: move it back to the axis.
    return out.emit("Transpose", [rows], perm=[*range(1, axis + 1), 0, *range(axis + 1, rank)])


class _Dimension:
    """A dimension in the direction of accumulation: slices of it and their concatenation."""

    def __init__(self, axis: int, size: int, reverse: bool, out: Rewriter) -> None:
        self._axis, self._size, self._reverse, self._out = axis, size, reverse, out

    def head(self, value: str, count: int) -> str:
        """Return the first `count` elements."""
        return self._part(value, 0, count)

    def drop_head(self, value: str, count: int) -> str:
        """Return all elements after the first `count`."""
        return self._part(value, count, self._size)

    def drop_tail(self, value: str, count: int) -> str:
        """Return all elements before the last `count`."""
        return self._part(value, 0, self._size - count)

    def join(self, head: str, tail: str) -> str:
        """Concatenate two parts in the direction of accumulation."""
        parts = [tail, head] if self._reverse else [head, tail]
        return self._out.emit("Concat", parts, axis=self._axis)

    def _part(self, value: str, start: int, end: int) -> str:
        if self._reverse:
            start, end = self._size - end, self._size - start
        bounds: Sequence[int] = (start, end, self._axis)
        return self._out.emit("Slice", [value, *(self._out.int64([each]) for each in bounds)])


def _full_like(value: str, number: int, element_type: str, out: Rewriter) -> str:
    """Return a tensor of the same shape filled with one number."""
    fill_value = Tensor(element_type, (1,), (number,))
    return out.emit("ConstantOfShape", [out.emit("Shape", [value])], value=fill_value)


@adapter("CumProd", 26, 25)
def expand_cumprod(node: Node, out: Rewriter) -> None:
    """Repeatedly multiply partial products shifted by 1, 2, 4, ... positions, up to the size of the axis."""
    _accumulate(node, "Mul", 1, out)
