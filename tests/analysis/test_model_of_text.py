"""Models of nodes that are given as text."""

from __future__ import annotations

import numpy
import pytest
from onnx import checker, load_from_string
from onnx.reference import ReferenceEvaluator

from opshift import convert_version
from opshift.analysis.model_text import model_of_text
from opshift.model.errors import OpshiftError
from opshift.registry.registry import default_registry


def model(text: str, opset: int) -> bytes:
    return model_of_text(text, opset, default_registry()).SerializeToString()


def test_inputs_and_outputs_are_the_values_at_the_ends() -> None:
    found = model_of_text("a = Relu(float[2] x)\nb = Add(a, w)\nc = Neg(a)", 17, default_registry())
    assert [each.name for each in found.graph.input] == ["x", "w"]
    assert [each.name for each in found.graph.output] == ["b", "c"]
    assert [each.version for each in found.opset_import] == [17]
    assert found.ir_version == 8


def test_outer_values_of_subgraphs_are_inputs() -> None:
    text = "y = If(bool c, then_branch=g() => (z) { z = Relu(x) }, else_branch=h() => (z) { z = Neg(x) })"
    found = model_of_text(text, 17, default_registry())
    assert {each.name for each in found.graph.input} == {"c", "x"}
    assert [each.name for each in found.graph.output] == ["y"]


def test_outputs_have_the_names_of_the_definition() -> None:
    found = model_of_text("TopK(x, k)\nRelu(x)\nNeg(x)\ncustom.Op(x)", 17, default_registry())
    assert [list(each.output) for each in found.graph.node] == [["Values", "Indices"], ["Y"], ["Y_1"], ["y"]]


def test_other_domains_have_the_opsets_of_the_release() -> None:
    text = "a = ai.onnx.ml.Scaler(x)\nb = com.microsoft.Gelu(a)\nc = example.Op(b)\nd = ai.onnx.Relu(c)"
    found = model_of_text(text, 17, default_registry())
    opsets = {each.domain: each.version for each in found.opset_import}
    assert opsets == {"": 17, "ai.onnx.ml": 3, "com.microsoft": 1, "example": 1}


@pytest.mark.parametrize(
    "text", ["y = Softmax(float[N, 2, 3] x, axis=1)", "Softmax(float[2, 2, 3] x, axis=1)"]
)
def test_converted_nodes_compute_the_same(text: str) -> None:
    before = model(text, 11)
    x = numpy.random.default_rng(0).random((2, 2, 3), "float32")
    # at opset 11, all dimensions from axis on are normalized together
    flat = numpy.exp(x.reshape(2, -1))
    expected = (flat / flat.sum(1, keepdims=True)).reshape(x.shape)
    after = load_from_string(convert_version(before, 13))
    (found,) = ReferenceEvaluator(after).run(None, {"x": x})
    numpy.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_whole_model_keeps_its_opset() -> None:
    text = '<ir_version: 8, opset_import: ["" : 16]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    found = load_from_string(model(text, 9))
    checker.check_model(found)
    assert found.opset_import[0].version == 16


def test_a_graph_gets_the_opset() -> None:
    found = load_from_string(model("g (float[2] x) => (float[2] y) { y = Relu (x) }", 9))
    checker.check_model(found)
    assert found.opset_import[0].version == 9


def test_refuses_an_unknown_opset() -> None:
    with pytest.raises(OpshiftError, match="no opset 999"):
        model("y = Relu(x)", 999)
