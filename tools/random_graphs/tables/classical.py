"""Classical machine learning."""

from __future__ import annotations

from typing import Any

import numpy as np

from random_graphs.draft import Choice, Draft, TensorSpec
from random_graphs.forests import FEATURES, Forest, random_votes, votes
from random_graphs.values import WORDS


def rows(n: Draft) -> TensorSpec:
    """Draw a matrix with one row for each sample."""
    return TensorSpec((n.number(1, 3), FEATURES))


def _maps_strings(n: Draft) -> bool:
    return n.first.type == "string"


def forest(n: Draft) -> dict[str, Any]:
    """Return the attributes of a random forest."""
    # the smallest and the largest vote are undefined for a target without a vote
    is_sum = n.attribute("aggregate_function") in (None, "SUM", "AVERAGE")
    drawn = random_votes(2) if is_sum else votes((0, 1))
    trees = Forest(drawn, trees=2, depth=2, seed=n.fact("seed", lambda: n.number(0, 99)))
    return trees.columns("target")


def column(name: str) -> Choice:
    """Return a Choice that yields one attribute of the node's forest."""
    return lambda n: forest(n).get(name)


NODES = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
VOTES = ("treeids", "nodeids", "ids", "weights")
CHOICES: dict[str, Choice] = (
    {f"TreeEnsembleRegressor.nodes_{name}": column(f"nodes_{name}") for name in NODES}
    | {f"TreeEnsembleRegressor.target_{name}": column(f"target_{name}") for name in VOTES}
    | {
        "TreeEnsembleRegressor.X": rows,
        "TreeEnsembleRegressor.n_targets": lambda n: 2,
        "TreeEnsembleRegressor.post_transform": lambda n: n.one_of(None, "NONE"),
        "ArrayFeatureExtractor.Y": lambda n: [0, 2],
        "ArrayFeatureExtractor.X": rows,
        "CategoryMapper.cats_int64s": lambda n: [1, 2],
        "CategoryMapper.cats_strings": lambda n: ["a", "B"],
        "CategoryMapper.X": lambda n: TensorSpec((n.number(1, 4),)),
        "Imputer.imputed_value_floats": lambda n: [0.5] if n.first.type == "float" else None,
        "Imputer.imputed_value_int64s": lambda n: [1] if n.first.type == "int64" else None,
        "Imputer.X": rows,
        "LabelEncoder.X": lambda n: TensorSpec((n.number(1, 4),)),
        "LabelEncoder.classes_strings": lambda n: ["a", "B", "ab"],
        "LabelEncoder.keys_strings": lambda n: ["a", "B", "ab"] if _maps_strings(n) else None,
        "LabelEncoder.keys_int64s": lambda n: [1, 2, 3] if n.first.type == "int64" else None,
        "LabelEncoder.keys_floats": lambda n: [0.5, 1.0, 2.0] if n.first.type == "float" else None,
        "LabelEncoder.values_strings": lambda n: (
            [str(w) for w in WORDS[:3]] if not _maps_strings(n) else None
        ),
        "LabelEncoder.values_int64s": lambda n: [7, 8, 9] if _maps_strings(n) else None,
        "LinearRegressor.X": rows,
        "LinearRegressor.coefficients": lambda n: list(np.linspace(-1, 1, 2 * FEATURES)),
        "LinearRegressor.intercepts": lambda n: n.one_of(None, [0.5, 1.0]),
        "LinearRegressor.targets": lambda n: 2,
        "LinearClassifier.X": rows,
        "LinearClassifier.coefficients": lambda n: list(np.linspace(-1, 1, 3 * FEATURES)),
        "LinearClassifier.intercepts": lambda n: [0.5, 1.0, 0.0],
        "LinearClassifier.classlabels_ints": lambda n: [0, 1, 2],
        # onnxruntime divides by the largest number, onnx.reference by the largest magnitude
        "Normalizer.X": lambda n: rows(n)._replace(kind="positive", fresh=True),
        # onnxruntime truncates floats, onnx.reference compares them
        "OneHotEncoder.X": lambda n: TensorSpec((n.number(1, 4),), "whole", fresh=True),
        "OneHotEncoder.cats_int64s": lambda n: [0, 1, 2] if not _maps_strings(n) else None,
        "OneHotEncoder.cats_strings": lambda n: ["a", "B"] if _maps_strings(n) else None,
        "Scaler.X": rows,
        "Scaler.offset": lambda n: [0.5] * FEATURES,
        "Scaler.scale": lambda n: [2.0] * FEATURES,
        "FeatureVectorizer.X": lambda n: [TensorSpec((2, 3)), TensorSpec((2, 2))],
        "FeatureVectorizer.inputdimensions": lambda n: [3, 2],
        "TfIdfVectorizer.X": lambda n: TensorSpec((n.number(1, 5),)),
        "TfIdfVectorizer.max_gram_length": lambda n: 2,
        "TfIdfVectorizer.min_gram_length": lambda n: 1,
        "TfIdfVectorizer.max_skip_count": lambda n: 1,
        "TfIdfVectorizer.ngram_counts": lambda n: [0, 2],
        "TfIdfVectorizer.ngram_indexes": lambda n: [0, 1, 2],
        "TfIdfVectorizer.pool_int64s": lambda n: [1, 2, 1, 2] if not _maps_strings(n) else None,
        "TfIdfVectorizer.pool_strings": lambda n: ["a", "B", "a", "B"] if _maps_strings(n) else None,
    }
)
RANKS: dict[str, tuple[int, int]] = {}
