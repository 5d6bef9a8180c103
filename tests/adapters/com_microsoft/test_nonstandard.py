"""LayerNormalization and SimplifiedLayerNormalization of onnxruntime, in the default domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import Array, Feeds, assert_equal, run
from support.forms import FORMS, RANKED_FORMS, in_form

import opshift
from opshift.analysis.model_summary import summarize_model
from opshift.registry.runtimes.files import get_runtime
from opshift.runtimes.check_support import check_support

LAYER, RMS = "LayerNormalization", "SimplifiedLayerNormalization"

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "epsilon": {"epsilon": 0.3},
    "two dimensions": {"axis": -2},
    "an axis from the front": {"axis": 1},
    "stash type": {"stash_type": 1},
}
TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16}
TOLERANCES = {"float": 1e-5, "double": 1e-12, "float16": 2e-2}


def _model(
    op_type: str, form: str = "fed", opset: int = 13, element_type: str = "float", **attributes: Any
) -> tuple[onnx.ModelProto, Feeds]:
    generator = np.random.default_rng(2)
    shape = (4,) if attributes.get("axis", -1) == -1 else (3, 4)
    names = ["x", "scale", "bias"] if op_type == LAYER else ["x", "scale"]
    shapes = [(2, 3, 4), shape, shape]
    feeds: dict[str, Array] = {
        name: generator.normal(size=each).astype(TYPES[element_type])
        for name, each in zip(names, shapes, strict=False)
    }
    node = helper.make_node(op_type, names, ["y"], name="norm", **attributes)
    outputs = {"y": helper.np_dtype_to_tensor_dtype(np.dtype(TYPES[element_type]))}
    return in_form(form, [node], feeds, outputs, opset)


def _operators(model: onnx.ModelProto) -> set[str]:
    graphs = [model.graph, *model.functions]
    nodes = [node for graph in graphs for node in graph.node]
    inner = [each for node in nodes for attribute in node.attribute for each in attribute.g.node]
    return {each.op_type for each in (*nodes, *inner)}


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("op_type", [LAYER, RMS])
@pytest.mark.parametrize("target", [9, 13, 16, 23])
def test_without_com_microsoft_leaves_standard_operators(op_type: str, form: str, target: int) -> None:
    model, feeds = _model(op_type, form, epsilon=0.1)
    converted = opshift.convert_version(model, target, without="com.microsoft")
    assert RMS not in _operators(converted)
    assert (LAYER in _operators(converted)) == (op_type == LAYER and target >= 17)
    assert "node.operator" not in {each.rule for each in opshift.check(converted)}
    # onnxruntime crashes on the nonstandard operators in local functions
    assert_equal(run(converted, feeds), run(*_model(op_type, epsilon=0.1)))


@pytest.mark.parametrize("element_type", TYPES)
@pytest.mark.parametrize("attributes", ATTRIBUTES.values(), ids=ATTRIBUTES)
@pytest.mark.parametrize("op_type", [LAYER, RMS])
@pytest.mark.parametrize("target", [13, 24])
def test_standard_operators_compute_the_same(
    op_type: str, attributes: dict[str, Any], element_type: str, target: int
) -> None:
    model, feeds = _model(op_type, element_type=element_type, **attributes)
    converted = opshift.convert_version(model, target, without="com.microsoft")
    assert_equal(run(converted, feeds), run(model, feeds), TOLERANCES[element_type])


@pytest.mark.parametrize("form", [form for form in FORMS if form != "function"])
@pytest.mark.parametrize("op_type", [LAYER, RMS])
@pytest.mark.parametrize("target", [11, 16])
def test_nodes_are_kept_where_onnx_has_no_such_operator(op_type: str, form: str, target: int) -> None:
    model, feeds = _model(op_type, form)
    converted = opshift.convert_version(model, target)
    assert op_type in _operators(converted)
    assert_equal(run(converted, feeds), run(model, feeds), 0)


def test_a_node_becomes_the_operator_of_onnx_at_opset_17_without_a_change() -> None:
    model, feeds = _model(LAYER, axis=-2)
    converted = opshift.convert_version(model, 21)
    assert converted.graph.node == model.graph.node
    assert "node.operator" not in {each.rule for each in opshift.check(converted)}
    assert_equal(run(converted, feeds), run(model, feeds), 0)


@pytest.mark.parametrize("target", [13, 21])
def test_a_named_operator_is_removed(target: int) -> None:
    model, feeds = _model(LAYER)
    converted = opshift.convert_version(model, target, without="ai.onnx.LayerNormalization")
    assert LAYER not in _operators(converted)
    assert_equal(run(converted, feeds), run(model, feeds))


def test_refuses_used_statistics() -> None:
    model, _ = _model(RMS)
    model.graph.node[0].output.append("inverse")
    model.graph.node.append(helper.make_node("Relu", ["inverse"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [2, 3, 1]))
    with pytest.raises(
        opshift.ConversionRefused, match=r"an output with statistics is used.*omit the output"
    ):
        opshift.convert_version(model, 23, without="com.microsoft")


def test_refuses_different_types() -> None:
    model, _ = _model(LAYER)
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    with pytest.raises(opshift.ConversionRefused, match=r"X is float16.*cast Scale and B"):
        opshift.convert_version(model, 21)


def test_an_unknown_opset_is_an_error() -> None:
    model, _ = _model(RMS, opset=99)
    with pytest.raises(opshift.OpshiftError, match="99"):
        opshift.convert_version(model, 21)


@pytest.mark.parametrize("op_type", [LAYER, RMS])
def test_types_and_shapes_are_inferred(op_type: str) -> None:
    """The element type of the result is necessary for Clip, and its rank for Softmax."""
    model, feeds = _model(op_type)
    nodes = [
        helper.make_node("Clip", ["y", "low"], ["clipped"]),
        helper.make_node("Softmax", ["clipped"], ["z"], axis=1),
    ]
    model.graph.node.extend(nodes)
    model.graph.initializer.append(helper.make_tensor("low", onnx.TensorProto.FLOAT, [], [0.0]))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [2, 3, 4]))
    converted = opshift.convert_version(model, 10)
    assert_equal(run(converted, feeds), run(model, feeds))


@pytest.mark.parametrize("op_type", [LAYER, RMS])
def test_the_checker_reports_them(op_type: str) -> None:
    model, _ = _model(op_type)
    (found,) = [each for each in opshift.check(model) if each.rule == "node.operator"]
    assert "only com.microsoft defines it" in found.reason
    assert found.remedy == "replace it with opshift convert --without com.microsoft"
    assert opshift.diagnose(model).fits == (op_type == RMS)  # a newer opset defines LayerNormalization


@pytest.mark.parametrize("op_type", [LAYER, RMS])
def test_onnxruntime_has_kernels_of_them(op_type: str) -> None:
    model, _ = _model(op_type)
    assert check_support(model, get_runtime("onnxruntime-1.31.1")) == ()


def test_inspect_names_the_domain_that_defines_them() -> None:
    model, _ = _model(RMS)
    (use,) = summarize_model(model, opshift.default_registry()).operators
    assert (use.operator, use.reason) == (f"com.microsoft.{RMS}:1", "nonstandard in ai.onnx")
