"""Read inputs and attributes of a node defensively: a value of an unexpected type counts as unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opshift.registry.shapes.dims import normalize_axis
from opshift.registry.shapes.rule_table import Shape, ShapeContext


class Setting(NamedTuple):
    """A list that is an attribute or an input, depending on the operator version."""

    values: Shape | None = None
    """The integers; `None` if they are unknown."""
    length: int | None = None
    absent: bool = False
    """Whether the list is known to be omitted."""


def input_shape(node: ShapeContext, position: int) -> Shape | None:
    """Return the shape of an input; `None` if it is unknown or the input does not exist."""
    return node.inputs[position] if 0 <= position < len(node.inputs) else None


def integer_attribute(node: ShapeContext, name: str, default: int | None = None) -> int | None:
    """Return an integer attribute."""
    value = node.attribute(name)
    return value if isinstance(value, int) else default


def integers_attribute(node: ShapeContext, name: str) -> tuple[int, ...] | None:
    """Return an attribute that is a list of integers."""
    value = node.attribute(name)
    if not isinstance(value, (tuple, list)):
        return None
    for item in value:
        if not isinstance(item, int):
            return None
    return tuple(value)


def string_attribute(node: ShapeContext, name: str) -> str:
    """Return a string attribute, or an empty string if it is absent."""
    value = node.attribute(name)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def list_attribute_length(value: object) -> int:
    """Return the number of elements in a list attribute, or 0 if it is absent."""
    return len(value) if isinstance(value, Sequence) and not isinstance(value, bytes | str) else 0


def constant_integers(node: ShapeContext, position: int) -> Shape | None:
    """Return the elements of a constant input; elements that are not integers are `None`."""
    values = node.constant(position)
    if values is None:
        return None
    return tuple(value if isinstance(value, int) else None for value in values)


def input_length(node: ShapeContext, position: int) -> int | None:
    """Return the number of elements of a 1-D input."""
    values = node.constant(position)
    if values is not None:
        return len(values)
    shape = input_shape(node, position)
    return shape[0] if shape is not None and len(shape) == 1 else None


def setting(node: ShapeContext, name: str) -> Setting:
    """Return the list called `name`, which is an attribute or an input of the operator version."""
    values = integers_attribute(node, name) if name in node.version.attributes else None
    if values is not None:
        return Setting(values, len(values))
    parameter = node.version.input_named(name)
    if parameter is None or parameter[0] >= node.input_count:
        return Setting(absent=True)
    return Setting(constant_integers(node, parameter[0]), input_length(node, parameter[0]))


def scalar_setting(node: ShapeContext, name: str, default: int | None = None) -> int | None:
    """Return the integer called `name`, an attribute or an input; the default if it is omitted."""
    if name in node.version.attributes:
        return integer_attribute(node, name, default)
    parameter = node.version.input_named(name)
    if parameter is None or parameter[0] >= node.input_count:
        return default
    return constant_scalar(node, parameter[0])


def constant_scalar(node: ShapeContext, position: int) -> int | None:
    """Return the only element of a constant input."""
    values = constant_integers(node, position)
    return values[0] if values is not None and len(values) == 1 else None


def axis_attribute(node: ShapeContext, rank: int | None, default: int | None = None) -> int | None:
    """Return the `axis` attribute as a non-negative index."""
    return normalize_axis(integer_attribute(node, "axis", default), rank)
