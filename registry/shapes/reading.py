"""Careful reading of what a node states: whatever has not the type it should have counts as unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import axis_in


class Setting(NamedTuple):
    """A list that a node gives as an attribute or as an input, depending on the operator's version."""

    values: Shape | None = None
    """Its integers; `None` if they are not known."""
    length: int | None = None
    absent: bool = False
    """Certainly left out."""


def input_shape(node: ShapeContext, position: int) -> Shape | None:
    """The shape of an input, `None` too where there is none."""
    return node.inputs[position] if 0 <= position < len(node.inputs) else None


def integer(node: ShapeContext, name: str, default: int | None = None) -> int | None:
    """An integer attribute."""
    value = node.attribute(name)
    return value if isinstance(value, int) else default


def integers(node: ShapeContext, name: str) -> tuple[int, ...] | None:
    """An attribute that is a list of integers."""
    value = node.attribute(name)
    if not isinstance(value, (tuple, list)):
        return None
    for item in value:
        if not isinstance(item, int):
            return None
    return tuple(value)


def text(node: ShapeContext, name: str) -> str:
    """A string attribute, empty if it is not there."""
    value = node.attribute(name)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def size_of(value: Any) -> int:
    """The number of items in a list attribute, 0 if it is not there."""
    return len(value) if isinstance(value, Sequence) and not isinstance(value, bytes | str) else 0


def constant_integers(node: ShapeContext, position: int) -> Shape | None:
    """A constant input's values, those that are no integers unknown."""
    values = node.constant(position)
    if values is None:
        return None
    return tuple(value if isinstance(value, int) else None for value in values)


def length(node: ShapeContext, position: int) -> int | None:
    """The number of elements in a 1-D input."""
    values = node.constant(position)
    if values is not None:
        return len(values)
    shape = input_shape(node, position)
    return shape[0] if shape is not None and len(shape) == 1 else None


def setting(node: ShapeContext, name: str) -> Setting:
    """The list called `name`, be it an attribute or an input of this version."""
    stated = integers(node, name) if name in node.version.attributes else None
    if stated is not None:
        return Setting(stated, len(stated))
    found = node.version.input_named(name)
    if found is None or found[0] >= node.input_count:
        return Setting(absent=True)
    return Setting(constant_integers(node, found[0]), length(node, found[0]))


def scalar_setting(node: ShapeContext, name: str, default: int | None = None) -> int | None:
    """The single integer called `name`, be it an attribute or an input; the default if left out."""
    if name in node.version.attributes:
        return integer(node, name, default)
    found = node.version.input_named(name)
    if found is None or found[0] >= node.input_count:
        return default
    return scalar(node, found[0])


def scalar(node: ShapeContext, position: int) -> int | None:
    """The only value of a constant input."""
    values = constant_integers(node, position)
    return values[0] if values is not None and len(values) == 1 else None


def axis(node: ShapeContext, rank: int | None, default: int | None = None) -> int | None:
    """The `axis` attribute, counted from the front."""
    return axis_in(integer(node, "axis", default), rank)
