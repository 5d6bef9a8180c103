"""TfIdfVectorizer as comparisons of windows with n-grams, equal to the kernel of onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import refusal_of
from support.execution import Array, assert_equal, build, op_types, run
from support.forms import RANKED_FORMS, in_form

from opshift import ConversionRefused, convert_version

RANDOM = np.random.default_rng(9)
POOL = {
    "ngram_counts": [0, 4, 10],
    "ngram_indexes": [0, 1, 2, 3, 4, 5, 6, 7, 8],
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7, 1, 2, 3, 3, 3, 3],
}


def _node(**attributes: Any) -> onnx.NodeProto:
    lengths = {"min_gram_length": 1, "max_gram_length": 3, "max_skip_count": 0}
    options = {**lengths, **POOL, "mode": "TF", **attributes}
    return helper.make_node("TfIdfVectorizer", ["x"], ["y"], name="node", **options)


def _rows(*shape: int, dtype: Any = np.int64) -> Array:
    return RANDOM.integers(1, 9, shape).astype(dtype)


CASES = [
    pytest.param({}, id="counts"),
    pytest.param({"max_skip_count": 4}, id="distances"),
    pytest.param({"min_gram_length": 2, "max_gram_length": 2, "max_skip_count": 1}, id="pairs"),
    pytest.param({"min_gram_length": 3, "max_skip_count": 7}, id="triples"),
    pytest.param({"mode": "IDF"}, id="occurrence"),
    pytest.param({"mode": "IDF", "weights": [0.5 * each for each in range(9)]}, id="weights"),
    pytest.param({"mode": "TFIDF", "weights": [0.3 * each for each in range(9)]}, id="weighted counts"),
    pytest.param({"mode": "TF", "weights": [2.0] * 9}, id="weights that do not count"),
    pytest.param({"ngram_indexes": [8, 7, 6, 5, 4, 3, 2, 1, 0], "max_skip_count": 2}, id="reversed"),
    pytest.param({"ngram_indexes": [0, 3, 3, 12, 3, 5, 6, 7, 0]}, id="shared and missing coordinates"),
    pytest.param({"ngram_counts": [0, 0, 10], "ngram_indexes": list(range(7))}, id="no single items"),
]


@pytest.mark.some_cases(6)
@pytest.mark.parametrize("rows", [(20,), (3, 15), (2, 3), (2, 1), (3, 0)], ids=str)
@pytest.mark.parametrize("attributes", CASES)
def test_counts_like_the_kernel(attributes: dict[str, Any], rows: tuple[int, ...]) -> None:
    feeds = {"x": _rows(*rows)}
    model = build([_node(**attributes)], feeds, {"y": TensorProto.FLOAT}, 17)
    for opset in (8, 11, 13, 24):
        result = convert_version(model, opset, without="ai.onnx.TfIdfVectorizer")
        assert "TfIdfVectorizer" not in op_types(result)
        assert_equal(run(result, feeds), run(model, feeds))


@pytest.mark.parametrize("form", RANKED_FORMS)
def test_replaces_nodes_in_any_form(form: str) -> None:
    nodes = [_node(max_skip_count=2)]
    model, feeds = in_form(form, nodes, {"x": _rows(2, 9, dtype=np.int32)}, {"y": TensorProto.FLOAT}, 13)
    result = convert_version(model, 13, without="ai.onnx.TfIdfVectorizer")
    assert_equal(run(result, feeds), run(model, feeds))


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"min_gram_length": 4, "max_gram_length": 5}, "no n-gram has a length"),
        ({"mode": "IDF", "weights": [1.0] * 9, "ngram_indexes": [*range(8, -1, -1)]}, "do not agree"),
        ({"ngram_indexes": [10**12] * 9}, "elements of a constant"),
        ({"max_skip_count": 2**40}, "nodes"),
    ],
)
def test_refuses_nodes_without_an_exact_form(attributes: dict[str, Any], reason: str) -> None:
    model = build([_node(**attributes)], {"x": _rows(2, 9)}, {"y": TensorProto.FLOAT}, 13)
    refusal = refusal_of(model, 8)
    assert reason in refusal.reason
    assert refusal.remedy


def test_refuses_n_grams_of_strings() -> None:
    node = _node()
    node.attribute.remove(next(each for each in node.attribute if each.name == "pool_int64s"))
    node.attribute.append(helper.make_attribute("pool_strings", ["a"] * 16))
    model = build([node], {"x": np.array(["a", "b"], object)}, {"y": TensorProto.FLOAT}, 13)
    with pytest.raises(ConversionRefused, match="the n-grams are strings"):
        convert_version(model, 8)
