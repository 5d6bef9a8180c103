"""Shapes of operators that select elements by value; the number of elements is unknown."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import product, replaced
from opshift.registry.shapes.reading import axis, input_shape
from opshift.registry.shapes.table import rule


@rule("compress")
def compress(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer an unknown size for the axis, or a list if there is no axis, because the input is flattened."""
    if node.attribute("axis") is None:
        return [(None,)]
    data = input_shape(node, 0)
    if data is None:
        return [None]
    position = axis(node, len(data))
    return [None if position is None else replaced(data, position, None)]


@rule("unique")
def unique(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer unknown counts of unique values; the inverse has one index per element or slice."""
    data = input_shape(node, 0)
    if node.attribute("axis") is None:
        return [(None,), (None,), (None if data is None else product(data),), (None,)]
    position = axis(node, None if data is None else len(data))
    if data is None or position is None:
        return [None, (None,), (None,), (None,)]
    return [replaced(data, position, None), (None,), (data[position],), (None,)]


@rule("non_zero")
def non_zero(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer one row per dimension and one column per non-zero element."""
    data = input_shape(node, 0)
    return [(len(data) if data else None, None)]


@rule("non_max_suppression")
def non_max_suppression(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer batch, class and box index of each selected box."""
    return [(None, 3)]
