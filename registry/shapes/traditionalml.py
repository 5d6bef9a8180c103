"""Output shapes of ai.onnx.ml operators and of string operators."""

from opshift.model.types import Shape
from opshift.registry.shapes.dims import of_rank, product
from opshift.registry.shapes.rule_table import Shapes, data_rule, rule
from opshift.registry.shapes.shape_context import ShapeContext


@rule("classifier")
def classifier(node: ShapeContext) -> Shapes:
    """Infer one class per sample, and a matrix of scores with an unknown number of columns."""
    samples, _ = of_rank(node.shape(0), 2)
    return [(samples,), (samples, None)]


@rule("regressor")
def regressor(node: ShapeContext) -> Shapes:
    """Infer one row per sample, and the number of columns from the attribute `targets` or `n_targets`."""
    targets = next((name for name in ("targets", "n_targets") if name in node.version.attributes), "")
    return [(of_rank(node.shape(0), 2)[0], node.integer(targets) if targets else None)]


@data_rule("one_hot_encoder")
def one_hot_encoder(node: ShapeContext, data: Shape) -> Shapes:
    """Append a dimension with one element per category."""
    return [(*data, max(node.list_length("cats_int64s"), node.list_length("cats_strings")) or None)]


@data_rule("array_feature_extractor")
def array_feature_extractor(node: ShapeContext, data: Shape) -> Shapes:
    """Replace the last dimension by the number of selected features."""
    selected = node.shape(1)
    features = None if selected is None else product(selected)
    return [(*data[:-1], features) if len(data) >= 2 else None]


@rule("joined_features")
def joined_features(node: ShapeContext) -> Shapes:
    """Infer one row per sample (a 1-D input is one sample), and the sum of `inputdimensions` as width."""
    data, widths = node.shape(0), node.integers("inputdimensions")
    rows = None if not data else data[0] if len(data) > 1 else 1
    return [(rows, None if widths is None or min(widths, default=-1) < 0 else sum(widths))]


@data_rule("string_split")
def string_split(node: ShapeContext, data: Shape) -> Shapes:
    """Append an unknown dimension for the substrings; output 1 has their number for each string."""
    return [(*data, None), data]


@data_rule("string_normalizer")
def string_normalizer(node: ShapeContext, data: Shape) -> Shapes:
    """Make the last dimension unknown, because the operator may remove stop words."""
    return [(*data[:-1], None) if data else None]


@data_rule("n_grams")
def n_grams(node: ShapeContext, data: Shape) -> Shapes:
    """Replace the last dimension by the largest index in `ngram_indexes`, plus 1."""
    indexes = node.integers("ngram_indexes")
    return [(*data[:-1], max(indexes) + 1 if indexes else None) if len(data) in (1, 2) else None]
