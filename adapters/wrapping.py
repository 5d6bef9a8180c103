"""Pad: the mode `wrap`, which continues the data from its opposite end, came with 19."""

from __future__ import annotations

from opshift.adapters.node import Node
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
        pair = [out.constant([amount], "int64") for amount in amounts]
        return _computed_positions(node.inputs[0], pair[0], pair[1], place, out)
    left = range(max(-before, 0), size - max(-after, 0))
    if not left:
        raise CannotConvert(f"dimension {place} is empty, so nothing can be continued")
    count = len(left)
    places = [left[at % count] for at in range(-max(before, 0), count + max(after, 0))]
    return out.constant(places, "int64")


def _gather_computed(value: str, pads: str, places: tuple[int, ...], out: Rewriter) -> str:
    for position, place in enumerate(places):
        before = out.emit("Gather", [pads, out.constant([position], "int64")], axis=0)
        after = out.emit("Gather", [pads, out.constant([len(places) + position], "int64")], axis=0)
        value = out.emit("Gather", [value, _computed_positions(value, before, after, place, out)], axis=place)
    return value


def _computed_positions(value: str, before: str, after: str, place: int, out: Rewriter) -> str:
    """As `_positions`, found at run time; `before` and `after` are lists of one."""
    first, last = (_if_positive(out.emit("Neg", [amount]), out) for amount in (before, after))
    size = out.emit("Gather", [out.emit("Shape", [value]), out.constant([place], "int64")], axis=0)
    count = out.emit("Sub", [out.emit("Sub", [size, first]), last])
    start = out.emit("Neg", [_if_positive(before, out)])
    limit = out.emit("Add", [count, _if_positive(after, out)])
    scalars = [_scalar(each, out) for each in (start, limit)]
    steps = out.emit("Range", [*scalars, out.constant(1, "int64")])
    return out.emit("Add", [out.emit("Mod", [steps, count]), first])


def _if_positive(value: str, out: Rewriter) -> str:
    """The number, or 0 if it is negative; Max takes no integers before 12."""
    twice = out.emit("Add", [value, out.emit("Abs", [value])])
    return out.emit("Div", [twice, out.constant([2], "int64")])


def _scalar(value: str, out: Rewriter) -> str:
    return out.emit("Squeeze", [value, out.constant([0], "int64")])
