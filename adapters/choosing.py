"""Where, OneHot, Compress, Scatter: what is chosen is gathered, so that nothing else reaches the result.

A product with zero and one would not do for floats: infinity times zero is NaN.
"""

from __future__ import annotations

import math

from opshift.adapters.casts import WIDER, cast
from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

LONGEST = 1 << 22
"""The most places that are written out as a constant."""


@adapter("Where", 9, 8)
def either_is_gathered(node: Node, out: Rewriter) -> None:
    """Logic chooses between booleans, arithmetic between integers, and Gather between all others."""
    condition, first, second = node.inputs
    element_type = out.element_type(first)
    if element_type == "bool":
        neither = out.emit("And", [out.emit("Not", [condition]), second])
        out.emit("Or", [out.emit("And", [condition, first]), neither], node.outputs)
    elif "int" in element_type:
        _weighted(node, element_type, out)
    else:
        shape = _known_size(_together(node.inputs, out), out)
        values = [_flat(_expanded(name, shape, out), out) for name in (first, second)]
        both = out.emit("Concat", values, axis=0)
        count = math.prod(shape)
        skipped = out.emit("Mul", [cast(out.emit("Not", [condition]), "int64", out), _number(count, out)])
        places = out.tensor(Tensor("int64", shape, tuple(range(count))))
        out.emit("Gather", [both, out.emit("Add", [places, skipped])], node.outputs, axis=0)


def _weighted(node: Node, element_type: str, out: Rewriter) -> None:
    """The sum of both, one times one and the other times zero."""
    wide = WIDER.get(element_type, element_type)
    weight = cast(node.inputs[0], wide, out)
    other = out.emit("Sub", [out.constant(1, wide), weight])
    pairs = zip(node.inputs[1:], (weight, other), strict=True)
    parts = [out.emit("Mul", [cast(name, wide, out), each]) for name, each in pairs]
    cast(out.emit("Add", parts), element_type, out, node.outputs)


@adapter("OneHot", 9, 8)
def matches_are_looked_up(node: Node, out: Rewriter) -> None:
    """Every index is compared with 0, 1, 2 and so on; a match is the place of one of the two values."""
    indices, depth, values = node.inputs
    count = int(out.require_constant(depth, "input depth").values[0])
    axis = node.attribute("axis", -1)
    numbers = cast(indices, "int64", out)
    if axis == -1:
        shape = out.emit("Concat", [out.emit("Shape", [indices]), out.constant([1], "int64")], axis=0)
        column, trailing = out.emit("Reshape", [numbers, shape]), 0
    else:
        column, trailing = out.emit("Unsqueeze", [numbers], axes=[axis]), out.rank(indices) - axis
    choices = out.tensor(Tensor("int64", (count, *[1] * trailing), tuple(range(count))))
    matches = cast(out.emit("Equal", [column, choices]), "int64", out)
    out.emit("Gather", [values, matches], node.outputs, axis=0)


@adapter("Compress", 9, 8)
def places_are_listed(node: Node, out: Rewriter) -> None:
    """A constant condition tells which places to gather."""
    condition = out.require_constant(node.inputs[1], "input condition")
    places = out.constant([place for place, is_kept in enumerate(condition.values) if is_kept], "int64")
    axis = node.attribute("axis")
    data = node.inputs[0] if axis is not None else _flat(node.inputs[0], out)
    out.emit("Gather", [data, places], node.outputs, axis=axis or 0)


@adapter("Scatter", 9, 8)
def updates_follow_the_data(node: Node, out: Rewriter) -> None:
    """Of constant indices it is known for every place whether an update or the data goes there."""
    data, indices, updates = node.inputs
    stated = out.require_constant(indices, "input indices")
    shape = _known_size(out.shape(data), out)
    steps = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
    axis = node.attribute("axis", 0) % len(shape)
    sources = list(range(math.prod(shape)))
    for number, index in enumerate(stated.values):
        at, rest = 0, number
        for place in reversed(range(len(shape))):
            rest, coordinate = divmod(rest, stated.dims[place])
            at += steps[place] * (index % shape[axis] if place == axis else coordinate)
        sources[at] = len(sources) + number
    both = out.emit("Concat", [_flat(data, out), _flat(updates, out)], axis=0)
    out.emit("Gather", [both, out.tensor(Tensor("int64", shape, tuple(sources)))], node.outputs, axis=0)


def _together(names: tuple[str, ...], out: Rewriter) -> tuple[int | None, ...] | None:
    """The shape that all are broadcast to, as far as it is known."""
    shapes = [out.shape(name) for name in names]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    rank = max(map(len, known))
    aligned = [(*[1] * (rank - len(shape)), *shape) for shape in known]
    return tuple(map(_common, zip(*aligned, strict=True)))


def _common(sizes: tuple[int | None, ...]) -> int | None:
    """The size that is not one; `None` if one of them is not known."""
    return None if None in sizes else next((size for size in sizes if size != 1), 1)


def _known_size(shape: tuple[int | None, ...] | None, out: Rewriter) -> tuple[int, ...]:
    sizes = tuple(size for size in shape or () if size is not None)
    if shape is None or len(sizes) < len(shape):
        raise CannotConvert(
            "its shape is not known, by which elements would be told apart",
            remedy="state the shapes of its inputs, or convert to opset 9 or later",
        )
    if math.prod(sizes) > LONGEST:
        raise CannotConvert(f"it would take a constant of {math.prod(sizes)} places")
    return sizes


def _expanded(name: str, shape: tuple[int, ...], out: Rewriter) -> str:
    return name if out.shape(name) == shape else out.emit("Expand", [name, out.constant(shape, "int64")])


def _flat(name: str, out: Rewriter) -> str:
    return out.emit("Reshape", [name, out.constant([-1], "int64")])


def _number(number: int, out: Rewriter) -> str:
    return out.constant(number, "int64")
