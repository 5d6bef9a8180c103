"""Pad: the mode `wrap`, which continues the data from its opposite end, came with 19."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.positions import around, pair, steps
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Pad", 19, 18)
def wrapped_positions_are_gathered(node: Node, out: Rewriter) -> None:
    """Every position of a padded dimension is one of the data's, counted round and round."""
    if node.attribute("mode", b"constant") != b"wrap":
        out.become(node)
        return
    places = _places(node, out)
    pads = out.constant_value(node.inputs[1])
    value = node.inputs[0]
    if pads is None:
        value = _gather_computed(value, node.inputs[1], places, out)
    else:
        count = len(places)
        for position, place in enumerate(places):
            amounts = pads.values[position], pads.values[count + position]
            if amounts != (0, 0):
                value = out.emit("Gather", [value, _positions(node, place, amounts, out)], axis=place)
    out.emit("Identity", [value], node.outputs)


def _places(node: Node, out: Rewriter) -> tuple[int, ...]:
    """The dimensions that are padded, in the order of `pads`."""
    if node.input(3):
        stated = out.require_constant(node.input(3), "input axes").values
        rank = out.rank(node.inputs[0]) if any(place < 0 for place in stated) else 0
        return tuple(place + rank if place < 0 else place for place in stated)
    shape = out.shape(node.inputs[1])
    if shape and shape[0] is not None:
        return tuple(range(shape[0] // 2))
    return tuple(range(out.rank(node.inputs[0])))


def _positions(node: Node, place: int, amounts: tuple[int, int], out: Rewriter) -> str:
    """Which elements of the dimension `place` follow each other, after what is cut off is gone."""
    before, after = amounts
    shape = out.shape(node.inputs[0])
    size = shape[place] if shape else None
    if size is None:
        lists = [out.constant([amount], "int64") for amount in amounts]
        return around(steps(node.inputs[0], lists[0], lists[1], place, out), out)
    left = range(max(-before, 0), size - max(-after, 0))
    if not left:
        raise CannotConvert(f"dimension {place} is empty, so nothing can be continued")
    count = len(left)
    places = [left[at % count] for at in range(-max(before, 0), count + max(after, 0))]
    return out.constant(places, "int64")


def _gather_computed(value: str, pads: str, places: tuple[int, ...], out: Rewriter) -> str:
    for position, place in enumerate(places):
        before, after = pair(pads, position, len(places), out)
        wrapped = around(steps(value, before, after, place, out), out)
        value = out.emit("Gather", [value, wrapped], axis=place)
    return value
