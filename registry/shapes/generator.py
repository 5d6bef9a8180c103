"""Shapes that attributes or constant inputs declare."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.dims import unknown
from opshift.registry.shapes.node_reading import (
    constant_scalar,
    input_shape,
    integer_attribute,
    integers_attribute,
    list_attribute_length,
    setting,
)
from opshift.registry.shapes.rule_table import Shape, ShapeContext, rule


@rule("scalar")
def scalar_shape(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer a scalar."""
    return [()]


@rule("shape")
def shape_of_shape(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer a list with one element per dimension, or per dimension from `start` to `end`."""
    data, start, end = (
        input_shape(node, 0),
        integer_attribute(node, "start", 0),
        integer_attribute(node, "end"),
    )
    if data is None or start is None:
        return [(None,)]
    return [(len(data[start:end]),)]


@rule("constant")
def constant(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the shape of the attribute that contains the value."""
    for name in ("value", "sparse_value"):
        tensor = node.attribute(name)
        if tensor is not None:
            return [_dims_of(tensor)]
    if any(node.attribute(name) is not None for name in ("value_float", "value_int", "value_string")):
        return [()]
    lists = (node.attribute(name) for name in ("value_floats", "value_ints", "value_strings"))
    return next(([(list_attribute_length(each),)] for each in lists if each is not None), [])


@rule("constant_of_shape")
def constant_of_shape(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the shape that the input contains."""
    listed = setting(node, "input")
    if listed.values is not None:
        return [listed.values]
    return [None if listed.length is None else unknown(listed.length)]


@rule("stated")
def shape_from_attribute(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the shape in the attribute `shape`."""
    return [integers_attribute(node, "shape")]


@rule("multinomial")
def multinomial(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the number of samples for each row."""
    rows = input_shape(node, 0)
    return [(rows[0] if rows else None, integer_attribute(node, "sample_size", 1))]


@rule("range")
def range_(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the length of a list from constant integers; it is unknown for floats."""
    start, limit, step = (constant_scalar(node, position) for position in range(3))
    if start is None or limit is None or not step:
        return [(None,)]
    return [(len(range(start, limit, step)),)]


@rule("window")
def window(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer a list with the length in the first input."""
    return [(constant_scalar(node, 0),)]


@rule("mel_weight_matrix")
def mel_weight_matrix(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer one row per frequency and one column per mel bin."""
    bins, size = constant_scalar(node, 0), constant_scalar(node, 1)
    return [(None if size is None else size // 2 + 1, bins)]


def _dims_of(tensor: object) -> Shape | None:
    dims = getattr(tensor, "dims", None)
    return None if dims is None else tuple(dims)
