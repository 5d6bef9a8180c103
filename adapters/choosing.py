"""Where, OneHot, Compress: what is chosen is gathered, so that nothing else reaches the result.

A product with zero and one would not do for floats: infinity times zero is NaN.
"""

from __future__ import annotations

import math

from opshift.adapters.casts import FLOATS, WIDER, cast
from opshift.adapters.node import Node, Tensor
from opshift.adapters.ranges import positions_below
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

LONGEST = 1 << 22
"""The most places that are written out as a constant."""
Shape = tuple[int, ...]


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
        shape, count, places = _places(node, out)
        values = [_flat(_expanded(name, shape, out), out) for name in (first, second)]
        skipped = out.emit("Mul", [cast(out.emit("Not", [condition]), "int64", out), count])
        both = out.emit("Concat", values, axis=0)
        out.emit("Gather", [both, out.emit("Add", [places, skipped])], node.outputs, axis=0)


def _places(node: Node, out: Rewriter) -> tuple[Shape | str, str, str]:
    """The shape of the result, how many elements it has, and the place of each of them."""
    shape = _known_shape(_together(node.inputs, out))
    if shape is not None:
        count = math.prod(shape)
        places = out.tensor(Tensor("int64", shape, tuple(range(count))))
        return shape, out.constant(count, "int64"), places
    condition, *values = node.inputs
    if out.element_type(values[0]) not in FLOATS:
        raise CannotConvert(
            "its shape is not known, by which elements would be told apart",
            remedy="state the shapes of its inputs, or convert to opset 9 or later",
        )
    mixed = cast(condition, out.element_type(values[0]), out)
    for name in values:
        mixed = out.emit("Add", [mixed, name])
    sizes = out.emit("Shape", [mixed])
    total = out.emit("Size", [mixed])
    listed = out.emit("Reshape", [total, out.constant([1], "int64")])
    return sizes, total, out.emit("Reshape", [positions_below(listed, out), sizes])


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
    axis = node.attribute("axis", -1)
    if axis < -1:
        axis += out.rank(indices) + 1
    numbers = cast(indices, "int64", out)
    if axis == -1:
        shape = out.emit("Concat", [out.emit("Shape", [indices]), out.constant([1], "int64")], axis=0)
        column, trailing = out.emit("Reshape", [numbers, shape]), 0
    else:
        column, trailing = out.emit("Unsqueeze", [numbers], axes=[axis]), out.rank(indices) - axis
    choices = _choices(depth, trailing, out)
    matches = cast(out.emit("Equal", [column, choices]), "int64", out)
    out.emit("Gather", [values, matches], node.outputs, axis=0)


@adapter("Compress", 9, 8)
def places_are_listed(node: Node, out: Rewriter) -> None:
    """The condition tells which places to gather."""
    known = out.constant_value(node.inputs[1])
    if known is None:
        places = _flat(out.emit("NonZero", node.inputs[1:], opset=9), out)
    else:
        places = out.constant([place for place, is_kept in enumerate(known.values) if is_kept], "int64")
    axis = node.attribute("axis")
    data = node.inputs[0] if axis is not None else _flat(node.inputs[0], out)
    out.emit("Gather", [data, places], node.outputs, axis=axis or 0)


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


def _known_shape(shape: tuple[int | None, ...] | None) -> Shape | None:
    """The shape, if all of it is known and its places fit in a constant."""
    sizes = tuple(size for size in shape or () if size is not None)
    if shape is None or len(sizes) < len(shape) or math.prod(sizes) > LONGEST:
        return None
    return sizes


def _expanded(name: str, shape: Shape | str, out: Rewriter) -> str:
    if isinstance(shape, str):
        return out.emit("Expand", [name, shape])
    return name if out.shape(name) == shape else out.emit("Expand", [name, out.constant(shape, "int64")])


def _choices(depth: str, trailing: int, out: Rewriter) -> str:
    """0, 1, 2 and so on below the depth, followed by so many dimensions of one."""
    known = out.constant_value(depth)
    if known is not None:
        count = int(known.values[0])
        return out.tensor(Tensor("int64", (count, *[1] * trailing), tuple(range(count))))
    whole = out.emit("Reshape", [cast(depth, "int64", out), out.constant([1], "int64")])
    shape = out.constant([-1, *[1] * trailing], "int64")
    return out.emit("Reshape", [positions_below(whole, out), shape])


def _flat(name: str, out: Rewriter) -> str:
    return out.emit("Reshape", [name, out.constant([-1], "int64")])
