"""Shapes of string operators."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.reading import input_shape, integers
from opshift.registry.shapes.table import rule


@rule("string_split")
def string_split(node: ShapeContext) -> Sequence[Shape | None]:
    """Append a dimension for the parts; the second output has the number of parts per string."""
    data = input_shape(node, 0)
    return [None if data is None else (*data, None), data]


@rule("string_normalizer")
def string_normalizer(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer an unknown last dimension, because stop words are removed."""
    data = input_shape(node, 0)
    return [(*data[:-1], None) if data else None]


@rule("n_grams")
def n_grams(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer a last dimension with one element per index in `ngram_indexes`."""
    data, indexes = input_shape(node, 0), integers(node, "ngram_indexes")
    if not data or len(data) > 2:
        return [None]
    return [(*data[:-1], max(indexes) + 1 if indexes else None)]
