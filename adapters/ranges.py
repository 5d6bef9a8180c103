"""Range: `start + i * delta` for every `i` below `(limit - start) / delta`, rounded up."""

from __future__ import annotations

import math
import struct

from opshift.adapters.bodies import LoopBody
from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

LONGEST = 1 << 16
"""The most elements that are written out as a constant."""
FARTHEST = 1e38
"""The distance from which on a float may no longer hold it."""
HALVES = ("float16", "bfloat16")
NON_ZERO = 9
"""From this opset on NonZero lists places; before, the turns of a loop are counted."""
ALL_NUMBERS = 14
"""From this opset on arithmetic takes numbers of every type."""


@adapter("Range", 27, 11)
def halves_are_worked_out_wider(node: Node, out: Rewriter) -> None:
    """float16 and bfloat16 are computed in the type that `stash_type` names, and rounded at the end."""
    element_type = out.element_type(node.inputs[0])
    if element_type not in HALVES:
        out.become(node, attributes={})
        return
    wide = [out.emit("Cast", [name], to=node.attribute("stash_type", 1), opset=13) for name in node.inputs]
    numbers = out.emit("Range", wide)
    out.emit("Cast", [numbers], node.outputs, to=BY_NAME[element_type].number, opset=13)


@adapter("Range", 11, 10)
def numbers_are_listed_or_computed(node: Node, out: Rewriter) -> None:
    """A constant where all three inputs are; else the positions of as many ones, scaled and shifted."""
    known = [out.constant_value(name) for name in node.inputs]
    numbers = _numbers([each for each in known if each is not None])
    if numbers is not None:
        out.become(node, op_type="Constant", inputs=[], attributes={"value": numbers})
        return
    start, _, delta = node.inputs
    element_type = out.element_type(start)
    positions = out.emit("Cast", [positions_below(_count(node, out), out)], to=BY_NAME[element_type].number)
    distances = out.emit("Mul", [positions, delta], opset=ALL_NUMBERS)
    out.emit("Add", [start, distances], node.outputs, opset=ALL_NUMBERS)


def positions_below(count: str, out: Rewriter) -> str:
    """0, 1, 2 and so on up to, but not including, a number that is a list of one int64."""
    if out.default_opset >= NON_ZERO:
        ones = out.emit("ConstantOfShape", [count], value=Tensor("int64", (1,), (1,)), opset=9, domain="")
        found = out.emit("NonZero", [ones], opset=9, domain="")
        return out.emit("Reshape", [found, out.constant([-1], "int64")], opset=9, domain="")
    body = LoopBody(out)
    body.output(body.emit("Identity", [body.turn], opset=1, domain=""), "int64", ())
    return body.run(count, (), out)[0]


def as_float(number: float) -> float:
    """A number as 32 bits hold it."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def _numbers(inputs: list[Tensor]) -> Tensor | None:
    if len(inputs) != 3:
        return None
    start, limit, delta = (each.scalar for each in inputs)
    steps = (limit - start) / delta if delta else math.inf
    if not (steps <= LONGEST and abs(limit - start) < FARTHEST):
        return None
    if inputs[0].element_type == "float":
        # How many steps there are can hang on the last bit.
        steps = as_float(limit - start) / delta
    count = max(math.ceil(steps), 0)
    return Tensor(inputs[0].element_type, (count,), tuple(start + index * delta for index in range(count)))


def _count(node: Node, out: Rewriter) -> str:
    """How many numbers there are, as a list of one; a count below 0 is none."""
    start, limit, delta = node.inputs
    double = BY_NAME["double"].number
    distance, step = (
        out.emit("Cast", [name], to=double)
        for name in (out.emit("Sub", [limit, start], opset=ALL_NUMBERS), delta)
    )
    steps = out.emit("Ceil", [out.emit("Div", [distance, step])])
    count = out.emit("Cast", [out.emit("Relu", [steps])], to=BY_NAME["int64"].number)
    return out.emit("Reshape", [count, out.constant([1], "int64")])
