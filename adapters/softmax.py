"""Softmax, LogSoftmax, Hardmax: `axis` split the input into two dimensions until 13 made it one dimension."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

ZERO_IS_A_SIZE = 14
"""From this opset on Reshape can be told that a 0 is a size, not a dimension to copy."""


@adapter(("Softmax", "LogSoftmax", "Hardmax"), 11, 13)
def normalise_the_flattened_input(node: Node, out: Rewriter) -> None:
    """All dimensions from `axis` on are normalised together: flatten them, and restore the shape."""
    data = node.inputs[0]
    axis = node.attribute("axis", 1)
    rank = out.known_rank(data)
    if axis == -1 or (rank is not None and axis == rank - 1):
        out.become(node, attributes={**node.attributes, "axis": -1})
        return
    if out.default_opset < ZERO_IS_A_SIZE and 0 in (out.shape(data) or ()):
        out.become(node, op_type="Identity", inputs=[data], attributes={})
        return
    shape = out.emit("Shape", [data])
    flat = out.emit("Flatten", [data], axis=axis)
    normal = out.fresh(node.op_type.lower())
    out.become(node, inputs=[flat], outputs=[normal], attributes={**node.attributes, "axis": -1})
    if out.default_opset < ZERO_IS_A_SIZE:
        out.emit("Reshape", [normal, shape], node.outputs)
    else:
        out.emit("Reshape", [normal, shape], node.outputs, opset=ZERO_IS_A_SIZE, allowzero=1)


@adapter(("Softmax", "LogSoftmax", "Hardmax"), 13, 11)
def normalise_the_last_dimension(node: Node, out: Rewriter) -> None:
    """From the last dimension on there is one only; another dimension trades places with it."""
    data = node.inputs[0]
    axis, rank = node.attribute("axis", -1), out.known_rank(data)
    if axis == -1 and rank is None:
        out.become(node, attributes={"axis": -1})
        return
    rank = out.rank(data)
    last, axis = rank - 1, axis + rank if axis < 0 else axis
    if not 0 <= axis <= last:
        raise CannotConvert(f"axis is {node.attribute('axis', -1)}, and {data!r} has {rank} dimensions")
    if axis == last:
        out.become(node, attributes={"axis": last})
        return
    order = [*range(axis), last, *range(axis + 1, last), axis]
    moved = out.emit("Transpose", [data], perm=order)
    normal = out.fresh(node.op_type.lower())
    out.become(node, inputs=[moved], outputs=[normal], attributes={"axis": last})
    out.emit("Transpose", [normal], node.outputs, perm=order)
