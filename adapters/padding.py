"""Pad: `pads` and the value were attributes until 11, and were for every dimension until 18."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from opshift.adapters.legal_types import require_types
from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.adapters.wider_types import wider_type
from opshift.registry.element_types import BY_NAME

FLOATS = ("tensor(float)", "tensor(double)")


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
    """They have to be constants; the value is a 32-bit float for every type of data."""
    pads = out.require_constant(node.input(1), "input pads").values
    attributes = {**node.attributes, "pads": pads}
    if node.input(2) and node.attribute("mode", b"constant") == b"constant":
        attributes["value"] = _as_float(out.require_constant(node.input(2), "input constant_value"), out)
    element_type = out.element_type(node.inputs[0])
    wider = wider_type(element_type, FLOATS, "order")
    if element_type in ("float16", "float", "double") or wider is None:
        require_types(node, out)
        out.become(node, inputs=node.inputs[:1], attributes=attributes)
        return
    wide = out.emit("Cast", [node.inputs[0]], opset=10, to=BY_NAME[wider].number)
    padded = out.fresh("pad")
    out.become(node, inputs=[wide], outputs=[padded], attributes=attributes)
    out.emit("Cast", [padded], node.outputs, opset=10, to=BY_NAME[element_type].number)


def _as_float(value: Tensor, out: Rewriter) -> float:
    number = float(value.scalar)
    narrow: float
    (narrow,) = struct.unpack("<f", struct.pack("<f", number)) if abs(number) < 3.4028235e38 else (number,)
    if narrow != number and number == number:
        out.concede("approximate", f"constant_value is {number}, which a 32-bit float attribute rounds")
    return number


@adapter("Pad", 2, 1)
def pads_are_called_paddings(node: Node, out: Rewriter) -> None:
    """Version 1 added only; negative amounts, which cut off, came with 2."""
    pads: Sequence[int] = node.attribute("pads")
    if any(amount < 0 for amount in pads):
        raise CannotConvert(f"pads is {list(pads)}; Pad-1 cannot cut off", remedy="cut off by a Slice")
    out.become(node, attributes={**node.without("pads"), "paddings": pads})
