"""Pad: `pads` and the value were attributes until 11, and were for every dimension until 18."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from opshift.adapters.clip import FLOAT_MAX
from opshift.adapters.node import Node, Tensor
from opshift.adapters.padding_computed import gather_padded
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.adapters.wider_types import wider_type
from opshift.registry.element_types import BY_NAME

FLOATS = ("float16", "float", "double")
WIDER = ("tensor(float)", "tensor(double)")


@adapter("Pad", 18, 13)
def pads_of_every_dimension(node: Node, out: Rewriter) -> None:
    """The dimensions that `axes` leaves out are padded by nothing."""
    data, pads, axes = node.input(0), node.input(1), node.input(3)
    kept = node.inputs[:3] if node.input(2) else node.inputs[:2]
    if axes:
        kept = (data, _spread(data, pads, axes, out), *kept[2:])
    out.become(node, inputs=kept)


def _spread(data: str, pads: str, axes: str, out: Rewriter) -> str:
    """The pads of some dimensions as those of all."""
    rank, amounts, places = out.known_rank(data), out.constant_value(pads), out.constant_value(axes)
    if rank is not None and amounts is not None and places is not None:
        full = [0] * (2 * rank)
        count = len(places.values)
        for position, place in enumerate(places.values):
            full[place % rank] = amounts.values[position]
            full[rank + place % rank] = amounts.values[count + position]
        return out.constant(full, "int64")
    none = _zeros(data, out)
    parts = out.emit_all("Split", [pads], 2, axis=0)
    spread = [out.emit("ScatterElements", [none, axes, part], axis=0) for part in parts]
    return out.emit("Concat", spread, axis=0)


def _zeros(data: str, out: Rewriter) -> str:
    """One zero for every dimension."""
    rank = out.known_rank(data)
    if rank is not None:
        return out.constant([0] * rank, "int64")
    count = out.emit("Shape", [out.emit("Shape", [data])])
    return out.emit("ConstantOfShape", [count], value=Tensor("int64", (1,), (0,)))


@adapter("Pad", 11, 2)
def pads_and_value_become_attributes(node: Node, out: Rewriter) -> None:
    """Constants that a 32-bit float holds; with others, elements are gathered from where they come from."""
    amounts = out.constant_value(node.input(1))
    element_type = out.element_type(node.inputs[0])
    wider = element_type if element_type in FLOATS else wider_type(element_type, WIDER, "order")
    is_filled = node.attribute("mode", b"constant") == b"constant" and bool(node.input(2))
    number = _number(out.constant_value(node.input(2))) if is_filled else 0.0
    if amounts is None or wider is None or number is None:
        gather_padded(node, out)
        return
    value = {"value": number} if is_filled else {}
    attributes = {**node.attributes, "pads": amounts.values, **value}
    if wider == element_type:
        out.become(node, inputs=node.inputs[:1], attributes=attributes)
        return
    wide = out.emit("Cast", [node.inputs[0]], opset=10, to=BY_NAME[wider].number)
    padded = out.fresh("pad")
    out.become(node, inputs=[wide], outputs=[padded], attributes=attributes)
    out.emit("Cast", [padded], node.outputs, opset=10, to=BY_NAME[element_type].number)


def _number(value: Tensor | None) -> float | None:
    """The value, if it is constant and a 32-bit float holds it."""
    number = float(value.scalar) if value is not None else None
    if number is None or not math.isfinite(number):
        return number
    is_held = abs(number) <= FLOAT_MAX and struct.unpack("<f", struct.pack("<f", number)) == (number,)
    return number if is_held else None


@adapter("Pad", 2, 1)
def pads_are_called_paddings(node: Node, out: Rewriter) -> None:
    """Version 1 added only; negative amounts, which cut off, came with 2."""
    pads: Sequence[int] = node.attribute("pads")
    if any(amount < 0 for amount in pads):
        raise CannotConvert(f"pads is {list(pads)}; Pad-1 cannot cut off", remedy="cut off by a Slice")
    out.become(node, attributes={**node.without("pads"), "paddings": pads})
