"""CumSum and CumProd over a dimension of unknown size, by a Loop over its elements."""

from __future__ import annotations

from opshift.adapters.bodies import LoopBody
from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import computed_dimension


def accumulated_in_turn(axis: int, node: Node, op_type: str, neutral: int, out: Rewriter) -> str:
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

    body = LoopBody(out)
    previous = body.input(element_type, dims)
    index = body.turn
    if reverse:
        count = out.emit("Reshape", [size, out.constant([], "int64")])
        last = out.emit("Sub", [count, out.constant(1, "int64")])
        index = body.emit("Sub", [last, body.turn])
    total = body.emit(op_type, [previous, body.emit("Gather", [value, index], axis=axis)])
    body.output(total, element_type, dims)
    body.output(body.emit("Identity", [previous if exclusive else total]), element_type, dims)
    body.output(body.emit("Identity", [index]), "int64", ())

    shape = out.emit("Gather", [out.emit("Shape", [value]), out.constant(other_axes, "int64")], axis=0)
    start = out.emit("ConstantOfShape", [shape], value=Tensor(element_type, (1,), (neutral,)))
    names = [out.fresh("total"), out.fresh("rows"), out.fresh("places")]
    _, rows, indices = body.run(size, [start], out, names)
    if reverse:
        # The Loop stacks its results from the last element to the first: gathering by the reversed indices
        # restores their order.
        rows = out.emit("Gather", [rows, indices], axis=0)
    # The Loop stacks its results along dimension 0: move it back to the axis.
    return out.emit("Transpose", [rows], perm=[*range(1, axis + 1), 0, *range(axis + 1, rank)])
