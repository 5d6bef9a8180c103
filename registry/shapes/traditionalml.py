"""Shapes of classical machine learning operators; data have one row per sample."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.dims import product
from opshift.registry.shapes.node_reading import (
    input_shape,
    integer_attribute,
    integers_attribute,
    list_attribute_length,
)
from opshift.registry.shapes.rule_table import Shape, ShapeContext, rule


@rule("classifier")
def classifier(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer one class per sample, and a matrix of scores."""
    samples = _samples(node)
    return [(samples,), (samples, None)]


@rule("regressor")
def regressor(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer one row per sample and one column per target, if the number of targets is declared."""
    targets = next((name for name in ("targets", "n_targets") if name in node.version.attributes), "")
    return [(_samples(node), integer_attribute(node, targets) if targets else None)]


@rule("one_hot_encoder")
def one_hot_encoder(node: ShapeContext) -> Sequence[Shape | None]:
    """Append a dimension with one element per category."""
    data = input_shape(node, 0)
    sizes = [list_attribute_length(node.attribute(name)) for name in ("cats_int64s", "cats_strings")]
    return [None if data is None else (*data, max(sizes) or None)]


@rule("array_feature_extractor")
def array_feature_extractor(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the input's shape with the number of selected features as last dimension."""
    data, selected = input_shape(node, 0), input_shape(node, 1)
    if data is None or len(data) < 2:
        return [None]
    return [(*data[:-1], None if selected is None else product(selected))]


@rule("joined_features")
def joined_features(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer one row per sample and the sum of the declared input widths.

    A 1-D input is one sample.
    """
    data, widths = input_shape(node, 0), integers_attribute(node, "inputdimensions")
    rows = None if data is None or not data else data[0] if len(data) > 1 else 1
    return [(rows, None if widths is None or min(widths, default=-1) < 0 else sum(widths))]


def _samples(node: ShapeContext) -> int | None:
    data = input_shape(node, 0)
    return data[0] if data is not None and len(data) == 2 else None


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
    data, indexes = input_shape(node, 0), integers_attribute(node, "ngram_indexes")
    if not data or len(data) > 2:
        return [None]
    return [(*data[:-1], max(indexes) + 1 if indexes else None)]
