"""Conversion of a single node without a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import Array, assert_equal, build, run

from opshift import ConversionRefused, ConvertedNode, UsageError, convert_node
from opshift.model import messages
from opshift.model.messages import NodeProto
from opshift.registry.errors import UnknownDomain, UnknownOpset

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
node = helper.make_node


def assemble(
    converted: ConvertedNode[onnx.NodeProto], feeds: Mapping[str, Array], outputs: Mapping[str, int]
) -> onnx.ModelProto:
    """Build a model from a converted node."""
    opsets = {"" if domain == "ai.onnx" else domain: opset for domain, opset in converted.opsets.items()}
    model = build(converted.nodes, feeds, outputs, opsets)
    model.graph.initializer.extend(converted.constants)
    return model


CASES: dict[str, tuple[onnx.NodeProto, int, int, Mapping[str, Any], dict[str, Array]]] = {
    "no change": (node("Relu", ["x"], ["y"]), 13, 17, {}, {"x": X}),
    "attributes become inputs": (
        node("Clip", ["x"], ["y"], min=0.0, max=0.5),
        10,
        17,
        {"x": "float"},
        {"x": X},
    ),
    "one node becomes several": (
        node("Softmax", ["x"], ["y"], axis=1),
        11,
        13,
        {"x": ("float", (2, 3, 4))},
        {"x": X},
    ),
    "symbolic shape": (
        node("Softmax", ["x"], ["y"], axis=1),
        11,
        13,
        {"x": ("float", ("N", None, 4))},
        {"x": X},
    ),
    "constant becomes an attribute": (
        node("ReduceSum", ["x", "a"], ["y"]),
        13,
        11,
        {"x": "float", "a": numpy_helper.from_array(np.array([1]))},
        {"x": X},
    ),
    "type as in a definition": (
        node("Clip", ["x"], ["y"], min=0.0, max=0.5),
        10,
        17,
        {"x": ("tensor(float)", ["N", 3])},
        {"x": X},
    ),
    "type as a TypeProto": (
        node("Clip", ["x"], ["y"], min=0.0, max=0.5),
        10,
        17,
        {"x": helper.make_tensor_type_proto(TensorProto.FLOAT, None)},
        {"x": X},
    ),
}


@pytest.mark.parametrize(("proto", "source", "target", "inputs", "feeds"), CASES.values(), ids=CASES)
def test_preserves_outputs(
    proto: onnx.NodeProto, source: int, target: int, inputs: Mapping[str, Any], feeds: dict[str, Array]
) -> None:
    before = proto.SerializeToString()
    converted = convert_node(proto, source, target, inputs=inputs)
    constants = {
        name: numpy_helper.to_array(each)
        for name, each in inputs.items()
        if isinstance(each, onnx.TensorProto)
    }
    model = build([proto], feeds, ["y"], source, initializers=constants)
    rebuilt = assemble(converted, feeds, {"y": TensorProto.FLOAT})
    assert_equal(run(rebuilt, feeds), run(model, feeds))
    assert proto.SerializeToString() == before
    assert converted.opsets == {"ai.onnx": target}


def test_replacement_keeps_the_node_name() -> None:
    converted = convert_node(node("Clip", ["x"], ["y"], name="clip", min=0.0), 10, 17, inputs={"x": "float"})
    assert [(each.op_type, each.name) for each in converted.nodes] == [("Clip", "clip")]


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_number_is_an_opset_of_the_default_domain(domain: str) -> None:
    converted = convert_node(node("Relu", ["x"], ["y"], domain=domain), 13, 14)
    assert converted.opsets == {"ai.onnx": 14}


def test_number_is_an_opset_of_the_node_domain() -> None:
    scaler = node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])
    assert convert_node(scaler, 1, 3).opsets == {"ai.onnx.ml": 3}


def test_accepts_opsets_by_domain_or_release() -> None:
    relu = node("Relu", ["x"], ["y"])
    assert convert_node(relu, {"": 13, "ai.onnx.ml": 2}, "onnx-1.12").opsets == {
        "ai.onnx": 17,
        "ai.onnx.ml": 3,
    }
    assert convert_node(relu, "13", ["17"]).opsets == {"ai.onnx": 17}


def test_returns_the_message_classes_of_the_argument() -> None:
    theirs = node("Clip", ["x"], ["y"], min=0.0)
    ours = NodeProto.FromString(theirs.SerializeToString())
    for proto, tensor in ((theirs, onnx.TensorProto), (ours, messages.TensorProto)):
        converted = convert_node(proto, 10, 17, inputs={"x": "float"})
        assert [type(each) for each in converted.nodes] == [type(proto)]
        assert {type(each) for each in converted.constants} == {tensor}


def test_new_values_have_unused_names() -> None:
    clip = node("Clip", ["const"], ["const_1"], min=0.0, max=1.0)
    converted = convert_node(clip, 10, 17, inputs={"const": "float"}, taken=["const_2", "const_3", "const"])
    names = [each.name for each in converted.constants]
    assert len(names) == 2
    assert not {"const", "const_1", "const_2", "const_3"} & set(names)


def test_converts_subgraphs_that_read_outer_values() -> None:
    out = helper.make_tensor_value_info("b", TensorProto.FLOAT, None)
    branch = helper.make_graph([node("Clip", ["x"], ["b"], min=0.0, max=0.5)], "g", [], [out])
    proto = node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    converted = convert_node(proto, 10, 17, inputs={"c": "bool", "x": "float"})
    feeds = {"x": X, "c": np.array(True)}
    rebuilt = assemble(converted, feeds, {"y": TensorProto.FLOAT})
    assert_equal(run(rebuilt, feeds), run(build([proto], feeds, ["y"], 10), feeds))


def test_refusal_states_the_reason() -> None:
    with pytest.raises(ConversionRefused, match="no operator of opset 6 computes trigonometric functions"):
        convert_node(node("Sin", ["x"], ["y"], name="u"), 7, 6)


def test_accepts_constant_inputs() -> None:
    reduce = node("ReduceSum", ["x", "a"], ["y"], keepdims=0)
    with pytest.raises(ConversionRefused):
        convert_node(reduce, 13, 12)
    axes = numpy_helper.from_array(np.array([1]))
    assert [each.op_type for each in convert_node(reduce, 13, 12, inputs={"a": axes}).nodes] == ["ReduceSum"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        pytest.param({"inputs": {"z": "float"}}, UsageError, "the node has no input 'z'", id="unknown input"),
        pytest.param(
            {"inputs": {"x": "floaty"}},
            UsageError,
            "unknown element type 'floaty' of input 'x'",
            id="unknown element type",
        ),
        pytest.param(
            {"inputs": {"x": "foo(float)"}},
            UsageError,
            r"unknown element type 'foo\(float\)' of input 'x'",
            id="unknown kind of type",
        ),
        pytest.param({"target": 99}, UnknownOpset, "no opset 99", id="unknown target"),
        pytest.param({"source": 0}, UnknownOpset, "no opset 0", id="unknown source"),
        pytest.param({"source": {"com.acme": 1}}, UnknownDomain, "com.acme", id="unknown domain"),
        pytest.param({"allow": "magic"}, UsageError, "unknown allow value 'magic'", id="unknown allow value"),
    ],
)
def test_rejects_invalid_arguments(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        convert_node(node("Relu", ["x"], ["y"]), **{"source": 13, "target": 17, **options})
