"""DFT: `axis` was an attribute, with another default, until 20 made it an input."""

from __future__ import annotations

from opshift.adapters.bodies import LoopBody
from opshift.adapters.negative_indices import shifted_if_negative
from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

INT64 = BY_NAME["int64"].number


@adapter("DFT", 17, 20)
def axis_becomes_an_input(node: Node, out: Rewriter) -> None:
    """The axis is always written: absent, it meant 1, and from 20 on the last but one."""
    axis = out.constant(node.attribute("axis", 1), "int64")
    out.become(node, inputs=[node.inputs[0], node.input(1), axis], attributes=node.without("axis"))


@adapter("DFT", 20, 17)
def axis_becomes_an_attribute(node: Node, out: Rewriter) -> None:
    """Absent, it means the last but one, which `axis` may name as -2; a computed one is looked for."""
    inputs = node.inputs[:2] if node.input(1) else node.inputs[:1]
    plain = node.with_(inputs=inputs)
    axis = out.constant_value(node.input(2))
    if axis is None and node.input(2):
        place = out.emit("Cast", node.inputs[2:3], to=INT64)
        rank = out.constant(out.rank(inputs[0]), "int64")
        _look_for(shifted_if_negative(place, rank, "int64", out), plain, out)
    else:
        _along(-2 if axis is None else int(axis.scalar), plain, out)


def _along(axis: int, node: Node, out: Rewriter) -> None:
    out.emit(node.op_type, node.inputs, node.outputs, **{**node.attributes, "axis": axis})


def _places(node: Node, out: Rewriter) -> list[int]:
    """The axes that can be meant: half a spectrum of one element stands for no signal."""
    shape = out.shape(node.inputs[0]) or ()
    is_half = node.attribute("inverse", 0) and node.attribute("onesided", 0) and not node.input(1)
    return [axis for axis, size in enumerate(shape[:-1]) if not (is_half and size == 1)]


def _look_for(axis: str, node: Node, out: Rewriter) -> None:
    """Each place has a loop of one turn if the axis is that one, and of none if not.

    A loop may change the shape of what it carries; the branches of an If may not differ in it before 11.
    """
    value, element_type = node.inputs[0], out.element_type(node.inputs[0])
    places = _places(node, out)
    for place in places:
        is_here = out.emit("Equal", [axis, out.constant(place, "int64")])
        body = LoopBody(out)
        body.input(element_type)
        result = out.fresh("dft")
        _along(place, node.with_(outputs=[result]), body)
        body.output(result, element_type)
        outputs = node.outputs if place == places[-1] else 1
        (value,) = body.run(out.emit("Cast", [is_here], to=INT64), [value], out, outputs)
