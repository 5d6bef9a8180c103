"""Outputs that hold what a condition selects: how much, only the data say."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import product, replaced
from opshift.registry.shapes.reading import axis, input_shape
from opshift.registry.shapes.table import rule


@rule("compress")
def compress(node: ShapeContext) -> Sequence[Shape | None]:
    """As many along the axis as the condition holds for; without an axis, of the flattened input."""
    if node.attribute("axis") is None:
        return [(None,)]
    data = input_shape(node, 0)
    if data is None:
        return [None]
    at = axis(node, len(data))
    return [None if at is None else replaced(data, at, None)]


@rule("unique")
def unique(node: ShapeContext) -> Sequence[Shape | None]:
    """Along an axis or of the flattened input; the inverse has an index for every element."""
    data = input_shape(node, 0)
    if node.attribute("axis") is None:
        return [(None,), (None,), (None if data is None else product(data),), (None,)]
    at = axis(node, None if data is None else len(data))
    if data is None or at is None:
        return [None, (None,), (None,), (None,)]
    return [replaced(data, at, None), (None,), (data[at],), (None,)]


@rule("non_zero")
def non_zero(node: ShapeContext) -> Sequence[Shape | None]:
    """A row a dimension, a column an element found."""
    data = input_shape(node, 0)
    return [(len(data) if data else None, None)]


@rule("non_max_suppression")
def non_max_suppression(node: ShapeContext) -> Sequence[Shape | None]:
    """Batch, class and box of everything kept."""
    return [(None, 3)]
