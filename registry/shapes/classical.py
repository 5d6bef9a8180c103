"""Classical machine learning: one row a sample."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import product
from opshift.registry.shapes.reading import input_shape, integer, integers, size_of
from opshift.registry.shapes.table import rule


@rule("classifier")
def classifier(node: ShapeContext) -> Sequence[Shape | None]:
    """A class for every sample, and a matrix of scores."""
    samples = _samples(node)
    return [(samples,), (samples, None)]


@rule("regressor")
def regressor(node: ShapeContext) -> Sequence[Shape | None]:
    """A row a sample, a column a target where their number is stated."""
    targets = next((name for name in ("targets", "n_targets") if name in node.version.attributes), "")
    return [(_samples(node), integer(node, targets) if targets else None)]


@rule("one_hot_encoder")
def one_hot_encoder(node: ShapeContext) -> Sequence[Shape | None]:
    """A new last dimension with a place for every category."""
    data = input_shape(node, 0)
    sizes = [size_of(node.attribute(name)) for name in ("cats_int64s", "cats_strings")]
    return [None if data is None else (*data, max(sizes) or None)]


@rule("array_feature_extractor")
def array_feature_extractor(node: ShapeContext) -> Sequence[Shape | None]:
    """The last dimension holds the chosen features."""
    data, chosen = input_shape(node, 0), input_shape(node, 1)
    if data is None or len(data) < 2:
        return [None]
    return [(*data[:-1], None if chosen is None else product(chosen))]


@rule("joined_features")
def joined_features(node: ShapeContext) -> Sequence[Shape | None]:
    """A row a sample, as wide as the listed inputs together; an input of one dimension is one sample."""
    data, widths = input_shape(node, 0), integers(node, "inputdimensions")
    rows = None if data is None or not data else data[0] if len(data) > 1 else 1
    return [(rows, None if widths is None or min(widths, default=-1) < 0 else sum(widths))]


def _samples(node: ShapeContext) -> int | None:
    data = input_shape(node, 0)
    return data[0] if data is not None and len(data) == 2 else None
