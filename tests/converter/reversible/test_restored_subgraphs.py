"""Nodes in the subgraphs of a restored node are not converted, so they must fit the model and the options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.execution import assert_equal, op_types, run, run_reference
from support.reversible import ROW, X, node, sequence_map, serialized, single_node_model

import opshift
from opshift.converter.options import Options
from opshift.converter.plan.changes import IrChange
from opshift.converter.reversible.history import lower_restored
from opshift.model.graphs import nested_nodes
from opshift.model.messages import NodeProto

FEEDS = {"x": X}


def sequence_map_of(body: onnx.NodeProto, *others: onnx.NodeProto, ir_version: int = 10) -> onnx.ModelProto:
    """Return a model with a SequenceMap whose body consists of a node from `e` to `f`, after `others`."""
    model = sequence_map()
    model.ir_version = ir_version
    del body_of(model).node[:]
    body_of(model).node.extend([*others, body])
    return model


def body_of(model: onnx.ModelProto) -> onnx.GraphProto:
    graph: onnx.GraphProto = next(each for each in model.graph.node if each.name == "map").attribute[0].g
    return graph


def calling_model(overload: str = "") -> onnx.ModelProto:
    """Return a SequenceMap that calls a function."""
    call = node("Act", ["e"], ["f"], domain="com.acme")
    body, imports = [node("Abs", ["a"], ["b"])], [helper.make_opsetid("", 20)]
    function = helper.make_function("com.acme", "Act", ["a"], ["b"], body, imports)
    call.overload = function.overload = overload
    model = sequence_map_of(call)
    model.opset_import.add(domain="com.acme", version=1)
    model.functions.append(function)
    return model


def lowered(model: onnx.ModelProto, **arguments: Any) -> onnx.ModelProto:
    result: onnx.ModelProto = opshift.convert_version(model, 16, reversible=True, **arguments)
    assert "SequenceMap" not in op_types(result)
    return result


def problems(model: onnx.ModelProto) -> list[str]:
    """Return the rules about IR features, devices, initializers and calls that a model violates."""
    rules = [str(each.rule) for each in opshift.check(model)]
    return [each for each in rules if each.startswith(("ir.", "device.", "initializer.", "node."))]


class TestCalls:
    """A restored node may only call functions that the model has."""

    @pytest.mark.parametrize(
        ("overload", "ir_version", "is_restored"),
        [("", None, True), ("o", None, True), ("", 9, True), ("", 7, False), ("o", 9, False)],
        ids=["kept", "overload kept", "kept at an older IR", "inlined", "renamed"],
    )
    @pytest.mark.parametrize("way_back", [None, "keep"])
    def test_restores_calls_of_existing_functions_only(
        self, overload: str, ir_version: int | None, is_restored: bool, way_back: str | None
    ) -> None:
        model = calling_model(overload)
        down = lowered(model, ir_version=ir_version)
        up = opshift.convert_version(down, 20, ir_version=way_back)
        assert ("SequenceMap" in op_types(up)) == is_restored
        assert not problems(up)
        assert_equal(run(up, FEEDS), run(model, FEEDS))

    def test_restores_operators_without_a_definition(self) -> None:
        model = sequence_map_of(node("Private", ["e"], ["f"], domain="com.acme"))
        model.opset_import.add(domain="com.acme", version=1)
        assert serialized(opshift.convert_version(lowered(model), 20)) == serialized(model)


@pytest.mark.parametrize(
    ("domain", "without", "is_restored"),
    [
        ("", "ai.onnx.Gelu", False),
        ("", "ai.onnx.Mish", True),
        ("com.microsoft", "com.microsoft.Gelu", False),
        ("com.microsoft", "com.microsoft", False),
        ("com.microsoft", "ai.onnx.Gelu", True),
    ],
)
def test_restores_no_subgraphs_with_unwanted_operators(domain: str, without: str, is_restored: bool) -> None:
    model = sequence_map_of(node("Gelu", ["e"], ["f"], domain=domain))
    if domain:
        model.opset_import.add(domain=domain, version=1)
    up = opshift.convert_version(lowered(model), 20, without=without)
    assert ("SequenceMap" in op_types(up)) == is_restored
    operators = {(each.domain, each.op_type) for each in nested_nodes(up.graph)}
    assert ((domain, "Gelu") in operators) == is_restored
    assert_equal(run(up, FEEDS), run(model, FEEDS))


SPARSE = helper.make_sparse_tensor(
    numpy_helper.from_array(ROW[:2], "w"), numpy_helper.from_array(np.array([0, 2]), "w_indices"), [4]
)
SCALED = node("Mul", ["e", "w"], ["f"])


def with_metadata() -> onnx.ModelProto:
    """Return a model with metadata of a node, of its subgraph, and of a node and a value in the subgraph."""
    model = sequence_map_of(node("Gelu", ["e"], ["f"]))
    body = body_of(model)
    for each in (model.graph.node[1], body, body.node[0], body.output[0]):
        each.metadata_props.add(key="k", value="v")
    return model


def with_sparse_initializer() -> onnx.ModelProto:
    model = sequence_map_of(SCALED)
    body_of(model).sparse_initializer.append(SPARSE)
    return model


def with_sparse_attribute() -> onnx.ModelProto:
    return sequence_map_of(SCALED, node("Constant", [], ["w"], sparse_value=SPARSE))


def with_initializer() -> onnx.ModelProto:
    model = sequence_map_of(SCALED)
    body_of(model).initializer.append(numpy_helper.from_array(ROW, "w"))
    return model


def with_devices() -> onnx.ModelProto:
    model = sequence_map_of(node("Gelu", ["e"], ["f"]), ir_version=11)
    model.configuration.add(name="pair", num_devices=2)
    for each, tensor in ((model.graph.node[1], "s"), (body_of(model).node[0], "e")):
        devices = each.device_configurations.add(configuration_id="pair")
        devices.sharding_spec.add(tensor_name=tensor, device=[0])
    return model


FEATURES = [
    ("metadata", with_metadata, 9),
    ("sparse initializer", with_sparse_initializer, 5),
    ("sparse initializer, before standalone initializers", with_sparse_initializer, 3),
    ("sparse attribute", with_sparse_attribute, 5),
    ("initializer", with_initializer, 3),
    ("device configurations", with_devices, 9),
]


class TestIrFeatures:
    """Restored nodes have no features that the IR version of the result lacks."""

    @pytest.mark.parametrize(
        ("make", "ir_version"), [row[1:] for row in FEATURES], ids=[row[0] for row in FEATURES]
    )
    @pytest.mark.parametrize(
        "has_old_ir", [True, False], ids=["old IR on both ways", "old IR in the second conversion"]
    )
    def test_rewrites_features_that_the_ir_version_lacks(
        self, make: Callable[[], onnx.ModelProto], ir_version: int, has_old_ir: bool
    ) -> None:
        model = make()
        expected = run(without_devices(model), FEEDS)
        down = lowered(model, ir_version=ir_version if has_old_ir else None, allow="drop-devices")
        up = opshift.convert_version(down, 20, ir_version=ir_version, allow="drop-devices")
        assert up.ir_version == ir_version
        assert "SequenceMap" in op_types(up)
        assert not problems(up)
        # onnxruntime replaces SequenceMap by a Loop with initializers, which it refuses below IR version 4
        execute = run if ir_version >= 4 else run_reference
        assert_equal(execute(up, FEEDS), expected)

    @pytest.mark.parametrize("make", [row[1] for row in FEATURES], ids=[row[0] for row in FEATURES])
    def test_restores_features_at_the_original_ir_version(self, make: Callable[[], onnx.ModelProto]) -> None:
        model = make()
        assert serialized(opshift.convert_version(lowered(model), 20)) == serialized(model)

    @pytest.mark.parametrize(("target", "is_restored"), [(15, False), (18, True), (20, True)])
    @pytest.mark.parametrize("ir_version", [None, 8])
    def test_keeps_metadata_that_was_moved_to_the_model(
        self, target: int, is_restored: bool, ir_version: int | None
    ) -> None:
        model = single_node_model(19, "LayerNormalization", constants={"scale": ROW})
        model.graph.node[1].metadata_props.add(key="k", value="v")
        down = opshift.convert_version(model, 13, reversible=True, ir_version=8)
        up = opshift.convert_version(down, target, ir_version=ir_version)
        moved, other = ([each for each in part.metadata_props if each.value == "v"] for part in (down, up))
        assert len(moved) == 1
        assert moved == other
        assert up.ir_version >= 8
        assert ("LayerNormalization" in op_types(up)) == is_restored
        assert not any(each.metadata_props for each in up.graph.node)
        assert_equal(run(up, FEEDS), run(model, FEEDS))

    def test_drops_references_to_removed_device_configurations(self) -> None:
        down = lowered(with_devices(), ir_version=9, allow="drop-devices")
        up = opshift.convert_version(down, 20)
        assert up.ir_version == 11
        assert "SequenceMap" in op_types(up)
        assert not problems(up)

    @pytest.mark.parametrize("ir_version", [None, 7], ids=["any IR version", "strict IR version"])
    def test_raises_the_ir_version_or_refuses_other_features(self, ir_version: int | None) -> None:
        optional = NodeProto(op_type="Optional", output=["o"])
        optional.attribute.add(name="type", type=onnx.AttributeProto.TYPE_PROTO).tp.tensor_type.elem_type = 1
        change = lower_restored([optional], IrChange(7, 7), Options.of(18, ir_version=ir_version))
        assert change.after == (ir_version or 8)
        assert [each.operator for each in change.refusals] == (["IR version 8"] if ir_version else [])


def without_devices(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a model at an IR version that onnxruntime reads."""
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    copy.ir_version = min(copy.ir_version, 10)
    copy.ClearField("configuration")
    for each in (*copy.graph.node, *body_of(copy).node):
        each.ClearField("device_configurations")
    return copy
