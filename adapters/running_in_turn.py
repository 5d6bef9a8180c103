"""Running sums and products over a dimension of unknown size: a loop takes its elements in turn."""

from __future__ import annotations

from opshift.adapters.bodies import LoopBody
from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import computed_dimension


def accumulated_in_turn(axis: int, node: Node, op_type: str, neutral: int, out: Rewriter) -> str:
    """What each element of one dimension has taken up, the way the node's attributes say."""
    value = node.inputs[0]
    size = computed_dimension(value, axis, out)
    backwards = bool(node.attribute("reverse", 0))
    one_before = bool(node.attribute("exclusive", 0))
    rank = out.rank(value)
    rest = [each for each in range(rank) if each != axis]
    dims, element_type = (None,) * len(rest), out.element_type(value)

    body = LoopBody(out)
    before = body.input(element_type, dims)
    place = body.turn
    if backwards:
        number = out.emit("Reshape", [size, out.constant([], "int64")])
        last = out.emit("Sub", [number, out.constant(1, "int64")])
        place = body.emit("Sub", [last, body.turn])
    total = body.emit(op_type, [before, body.emit("Gather", [value, place], axis=axis)])
    body.output(total, element_type, dims)
    body.output(body.emit("Identity", [before if one_before else total]), element_type, dims)
    body.output(body.emit("Identity", [place]), "int64", ())

    shape = out.emit("Gather", [out.emit("Shape", [value]), out.constant(rest, "int64")], axis=0)
    start = out.emit("ConstantOfShape", [shape], value=Tensor(element_type, (1,), (neutral,)))
    names = [out.fresh("total"), out.fresh("rows"), out.fresh("places")]
    _, rows, places = body.run(size, [start], out, names)
    if backwards:
        rows = out.emit("Gather", [rows, places], axis=0)
    return out.emit("Transpose", [rows], perm=[*range(1, axis + 1), 0, *range(axis + 1, rank)])
