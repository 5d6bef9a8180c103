"""`fit` replaces nodes of ONNX's operators by those of com.microsoft that a runtime implements."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper
from support.execution import Feeds, assert_equal, build, run

from opshift.analysis.fit.fit import fit

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 4, 6)).astype(np.float32)
HEADS, CACHE = RNG.normal(size=(2, 3, 5, 8)).astype(np.float32), RNG.normal(size=(7, 4)).astype(np.float32)
POSITIONS = np.array([[0, 1, 2, 3, 1], [3, 2, 1, 0, 0]])

CASES: list[tuple[str, int, Feeds, str]] = [
    ("Gelu", 20, {"x": X}, "Gelu"),
    ("Swish", 24, {"x": X}, "QuickGelu"),
    ("RotaryEmbedding", 23, {"x": HEADS, "c": CACHE, "s": CACHE, "p": POSITIONS}, "RotaryEmbedding"),
]


def _operators(model: onnx.ModelProto) -> list[tuple[str, str]]:
    return [(each.domain, each.op_type) for each in model.graph.node]


@pytest.mark.parametrize(("op_type", "opset", "feeds", "replacement"), CASES)
def test_one_node_replaces_an_operator_that_the_runtime_lacks(
    op_type: str, opset: int, feeds: Feeds, replacement: str
) -> None:
    model = build([helper.make_node(op_type, list(feeds), ["y"])], feeds, ["y"], opset)
    fitted = fit(model, "onnxruntime-1.16.3")
    assert _operators(fitted.model) == [("com.microsoft", replacement)]
    assert fitted.report.replaced == (f"com.microsoft.{replacement}:1 for ai.onnx.{op_type}:{opset}",)
    assert_equal(run(fitted.model, feeds), run(model, feeds))
    # A runtime with a kernel keeps the node.
    assert _operators(fit(model, "onnxruntime-1.31.1").model) == [("", op_type)]


def test_other_nodes_are_expressed_by_older_operators() -> None:
    caches = {"c": np.tile(CACHE[None, :5], (2, 1, 1)), "s": np.tile(CACHE[None, :5], (2, 1, 1))}
    feeds = {"x": HEADS, **caches}
    model = build([helper.make_node("RotaryEmbedding", list(feeds), ["y"])], feeds, ["y"], 23)
    fitted = fit(model, "onnxruntime-1.20.1")
    assert {domain for domain, _ in _operators(fitted.model)} == {""}
    assert_equal(run(fitted.model, feeds), run(model, feeds))


def test_a_release_without_an_attribute_of_the_equivalent_gets_older_operators() -> None:
    """The schema of com.microsoft.RotaryEmbedding in 1.16.3 has no attribute `num_heads`."""
    model = onnx.parser.parse_model("""<ir_version: 12, opset_import: ["": 24]>
    main (float[2, 4, 16] x, float[5, 4] c, float[5, 4] s, int64[2, 4] p) => (float[2, 4, 16] y) {
        y = RotaryEmbedding <num_heads = 2> (x, c, s, p)
    }""")
    feeds = {"x": HEADS.reshape(2, 3, 40)[:, :, :32].reshape(-1)[:128].reshape(2, 4, 16)}
    feeds |= {"c": CACHE[:5], "s": CACHE[:5], "p": POSITIONS[:, :4]}
    fitted = fit(model, "onnxruntime-1.16.3")
    assert {domain for domain, _ in _operators(fitted.model)} == {""}
    assert_equal(run(fitted.model, feeds), run(model, feeds))
    assert _operators(fit(model, "onnxruntime-1.17.3").model) == [("com.microsoft", "RotaryEmbedding")]
