"""One node outside of a model: what takes its place computes the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.running import Array, assert_equal, build, run

import opshift
from opshift import ConversionRefused, ConvertedNode, UsageError, convert_node
from opshift.model.messages import NodeProto
from opshift.registry.errors import UnknownDomain, UnknownOpset

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
node = helper.make_node


def assembled(
    found: ConvertedNode, feeds: Mapping[str, Array], outputs: Mapping[str, int]
) -> onnx.ModelProto:
    """A model of the pieces."""
    opsets = {"" if domain == "ai.onnx" else domain: opset for domain, opset in found.opsets.items()}
    model = build(found.nodes, feeds, outputs, opsets)
    model.graph.initializer.extend(found.constants)
    return model


CASES: dict[str, tuple[onnx.NodeProto, int, int, Mapping[str, Any], dict[str, Array]]] = {
    "nothing to do": (node("Relu", ["x"], ["y"]), 13, 17, {}, {"x": X}),
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
    "a shape with names": (
        node("Softmax", ["x"], ["y"], axis=1),
        11,
        13,
        {"x": ("float", ("N", None, 4))},
        {"x": X},
    ),
    "a constant becomes an attribute": (
        node("ReduceSum", ["x", "a"], ["y"]),
        13,
        11,
        {"x": "float", "a": numpy_helper.from_array(np.array([1]))},
        {"x": X},
    ),
    "a type as a message": (
        node("Clip", ["x"], ["y"], min=0.0, max=0.5),
        10,
        17,
        {"x": helper.make_tensor_type_proto(TensorProto.FLOAT, None)},
        {"x": X},
    ),
}


@pytest.mark.parametrize(("given", "source", "target", "known", "feeds"), CASES.values(), ids=CASES)
def test_the_pieces_compute_the_same(
    given: onnx.NodeProto, source: int, target: int, known: Mapping[str, Any], feeds: dict[str, Array]
) -> None:
    before = given.SerializeToString()
    found = convert_node(given, source, target, inputs=known)
    constants = {
        name: numpy_helper.to_array(each)
        for name, each in known.items()
        if isinstance(each, onnx.TensorProto)
    }
    model = build([given], feeds, ["y"], source, initializers=constants)
    pieces = assembled(found, feeds, {"y": TensorProto.FLOAT})
    assert_equal(run(pieces, feeds), run(model, feeds))
    assert given.SerializeToString() == before
    assert found.opsets == {"ai.onnx": target}


def test_the_name_goes_with_the_successor() -> None:
    found = convert_node(node("Clip", ["x"], ["y"], name="clip", min=0.0), 10, 17, inputs={"x": "float"})
    assert [(each.op_type, each.name) for each in found.nodes] == [("Clip", "clip")]


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_the_number_is_of_the_default_domain(domain: str) -> None:
    found = convert_node(node("Relu", ["x"], ["y"], domain=domain), 13, 14)
    assert found.opsets == {"ai.onnx": 14}


def test_the_number_is_of_the_domain_of_the_node() -> None:
    scaler = node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])
    assert convert_node(scaler, 1, 3).opsets == {"ai.onnx.ml": 3}


def test_opsets_may_be_said_by_domain_or_release() -> None:
    relu = node("Relu", ["x"], ["y"])
    assert convert_node(relu, {"": 13, "ai.onnx.ml": 2}, "onnx-1.12").opsets == {
        "ai.onnx": 17,
        "ai.onnx.ml": 3,
    }
    assert convert_node(relu, "13", ["17"]).opsets == {"ai.onnx": 17}


def test_nodes_and_constants_are_of_the_class_that_was_given() -> None:
    theirs = node("Clip", ["x"], ["y"], min=0.0)
    ours = NodeProto.FromString(theirs.SerializeToString())
    for given, tensor in ((theirs, onnx.TensorProto), (ours, opshift.model.messages.TensorProto)):
        found = convert_node(given, 10, 17, inputs={"x": "float"})
        assert [type(each) for each in found.nodes] == [type(given)]
        assert {type(each) for each in found.constants} == {tensor}


def test_new_values_have_no_name_that_is_taken() -> None:
    clip = node("Clip", ["const"], ["const_1"], min=0.0, max=1.0)
    found = convert_node(clip, 10, 17, inputs={"const": "float"}, taken=["const_2", "const_3", "const"])
    names = [each.name for each in found.constants]
    assert len(names) == 2
    assert not {"const", "const_1", "const_2", "const_3"} & set(names)


def test_graphs_within_are_converted_and_see_the_values_around() -> None:
    out = helper.make_tensor_value_info("b", TensorProto.FLOAT, None)
    branch = helper.make_graph([node("Clip", ["x"], ["b"], min=0.0, max=0.5)], "g", [], [out])
    given = node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    found = convert_node(given, 10, 17, inputs={"c": "bool", "x": "float"})
    feeds = {"x": X, "c": np.array(True)}
    pieces = assembled(found, feeds, {"y": TensorProto.FLOAT})
    assert_equal(run(pieces, feeds), run(build([given], feeds, ["y"], 10), feeds))


def test_a_node_that_cannot_be_converted_says_why() -> None:
    with pytest.raises(ConversionRefused, match="no operator of opset 6 computes trigonometric functions"):
        convert_node(node("Sin", ["x"], ["y"], name="u"), 7, 6)


def test_what_has_to_be_known_may_be_told() -> None:
    reduce = node("ReduceSum", ["x", "a"], ["y"], keepdims=0)
    with pytest.raises(ConversionRefused):
        convert_node(reduce, 13, 12)
    axes = numpy_helper.from_array(np.array([1]))
    assert [each.op_type for each in convert_node(reduce, 13, 12, inputs={"a": axes}).nodes] == ["ReduceSum"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        pytest.param({"inputs": {"z": "float"}}, UsageError, "the node has no input 'z'", id="another input"),
        pytest.param(
            {"inputs": {"x": "floaty"}},
            UsageError,
            "unknown element type 'floaty' of input 'x'",
            id="no type",
        ),
        pytest.param({"target": 99}, UnknownOpset, "no opset 99", id="no such opset"),
        pytest.param({"source": 0}, UnknownOpset, "no opset 0", id="no such source"),
        pytest.param({"source": {"com.acme": 1}}, UnknownDomain, "com.acme", id="no such domain"),
        pytest.param({"allow": "magic"}, UsageError, "unknown allow value 'magic'", id="unknown allow value"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        convert_node(node("Relu", ["x"], ["y"]), **{"source": 13, "target": 17, **options})
