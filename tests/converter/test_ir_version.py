"""The IR version: raised as far as the new opsets need, never lowered; constants are what it allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from support.running import Array, assert_equal, build, op_types, run

from opshift.converter.convert import convert, convert_version
from opshift.converter.errors import InvalidModel
from opshift.registry.catalogue import default_registry

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **stated: Any) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs, outputs, **stated)
    return made


def relu(opset: int, ir_version: int) -> onnx.ModelProto:
    return build([node("Relu", ["x"], ["y"])], {"x": X}, ["y"], opset, ir_version=ir_version)


ROWS = [
    ("raised to that of the release with the opset", 13, 7, 21, 10),
    ("raised over many releases", 7, 3, 26, 13),
    ("raised from less than it should have been", 17, 3, 18, 8),
    ("raised by one", 8, 3, 9, 4),
    ("kept where the opset needs no other", 13, 7, 14, 7),
    ("kept where it is higher than needed", 13, 12, 14, 12),
    ("kept on the way down", 21, 10, 13, 10),
    ("kept on the way far down", 21, 10, 7, 10),
    ("kept where the opset stays, though it is too low for it", 17, 3, 17, 3),
    ("kept where it is higher than any release has", 13, 99, 21, 99),
]


@pytest.mark.parametrize(
    ("source", "before", "target", "after"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_the_ir_version_is(source: int, before: int, target: int, after: int) -> None:
    model, report = convert(relu(source, before), target)
    assert model.ir_version == after
    assert report.ir_version == (before, after)


@pytest.mark.parametrize("opset", range(7, 27))
def test_no_opset_is_newer_than_the_ir_version_beside_it(opset: int) -> None:
    """As ONNX's own table of releases has it."""
    needed = helper.find_min_ir_version_for([helper.make_opsetid("", opset)])
    assert convert_version(relu(6, 3), opset).ir_version >= needed
    onnx.checker.check_model(shaped(convert_version(relu(6, 3), opset)))


def shaped(model: onnx.ModelProto) -> onnx.ModelProto:
    """The checker wants the outputs' shapes stated."""
    for value in model.graph.output:
        for size in X.shape:
            value.type.tensor_type.shape.dim.add().dim_value = size
    return model


@pytest.mark.parametrize(
    ("target", "after"), [({"ai.onnx.ml": 5}, 10), ({"ai.onnx.ml": 3}, 8)], ids=["5", "3"]
)
def test_an_opset_of_another_domain_raises_it_too(target: dict[str, int], after: int) -> None:
    scaler = node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0])
    model = build([scaler], {"x": X}, ["y"], {"ai.onnx.ml": 1}, ir_version=4)
    assert convert_version(model, target).ir_version == after


def test_a_release_raises_it_no_further_than_its_own() -> None:
    """Every opset of a release came with that release, or before it."""
    release = default_registry().releases.named("onnx-1.12")
    assert convert_version(relu(7, 3), "onnx-1.12").ir_version <= release.ir_version


# IR version 3, where an initializer is the default of a graph input


def old(nodes: Sequence[NodeProto], weights: dict[str, Array], opset: int) -> onnx.ModelProto:
    """A model of IR version 3: every initializer is an input too."""
    model = shaped(build(nodes, {"x": X}, ["y"], opset, ir_version=3, initializers=weights))
    for name, array in weights.items():
        element = helper.np_dtype_to_tensor_dtype(array.dtype)
        model.graph.input.append(helper.make_tensor_value_info(name, element, array.shape))
    return model


def bounded(opset: int = 8) -> onnx.ModelProto:
    nodes = [
        node("Unsqueeze", ["x"], ["u"], axes=[0]),
        node("Upsample", ["u"], ["v"], scales=[1.0, 1.0, 1.0]),
        node("Squeeze", ["v"], ["s"], axes=[0]),
        node("Add", ["s", "w"], ["y"]),
    ]
    return old(nodes, {"w": np.ones((2, 3), np.float32)}, opset)


def test_below_4_new_constants_are_nodes() -> None:
    """Tile-1 becomes Tile-6, whose counts are a list: opset 6 goes with IR version 3."""
    nodes = [node("Tile", ["x", "count", "axis"], ["t"]), node("Relu", ["t"], ["y"])]
    model = build([constant("count", 1), constant("axis", 0), *nodes], {"x": X}, ["y"], 5, ir_version=3)
    result = convert_version(shaped(model), 6)
    assert result.ir_version == 3
    assert len(result.graph.initializer) == 0
    assert op_types(result) == ["Constant", "Constant", "Constant", "Tile", "Relu"]
    onnx.checker.check_model(result)


def constant(name: str, value: float) -> NodeProto:
    return node("Constant", [], [name], value=numpy_helper.from_array(np.array(value, np.float32)))


def test_from_4_on_new_constants_are_initializers() -> None:
    model = bounded()
    result = convert_version(model, 13)
    assert result.ir_version == 7
    assert "Constant" not in op_types(result)
    inputs = {each.name for each in result.graph.input}
    new = [each.name for each in result.graph.initializer if each.name not in inputs]
    assert len(new) >= 2
    onnx.checker.check_model(result)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


def test_an_old_model_stays_legal_where_its_initializers_are_inputs() -> None:
    """And where the runtime lets a caller give them, from 4 on, it still does."""
    model = bounded()
    onnx.checker.check_model(model)
    for target in (9, 10, 11, 13, 21):
        result = convert_version(model, target)
        onnx.checker.check_model(result)
        assert list(result.graph.input) == list(model.graph.input)
        assert_equal(run(result, {"x": X}), [X + 1])
        assert_equal(run(result, {"x": X, "w": np.full((2, 3), 7, np.float32)}), [X + 7])


@pytest.mark.parametrize("ir_version", [1, 2])
def test_before_3_a_model_without_opset_imports_is_of_opset_1(ir_version: int) -> None:
    model = relu(1, ir_version)
    del model.opset_import[:]
    result = convert_version(model, 13)
    assert [(each.domain, each.version) for each in result.opset_import] == [("", 13)]
    assert result.ir_version == 7
    assert_equal(run(result, {"x": X}), [np.maximum(X, 0)])


def test_before_3_opset_1_stays_unsaid() -> None:
    model = relu(1, 2)
    del model.opset_import[:]
    assert convert_version(model, 1) == model


def test_before_3_attributes_need_not_say_their_type() -> None:
    model = build([node("Clip", ["x"], ["y"], min=-1.0, max=1.0)], {"x": X}, ["y"], 6, ir_version=2)
    for attribute in model.graph.node[0].attribute:
        attribute.ClearField("type")
    result = convert_version(model, 13)
    assert_equal(run(result, {"x": X}), [np.clip(X, -1, 1)])


def test_a_model_without_an_ir_version_has_to_say_its_opsets() -> None:
    """Protobuf reads a missing number as 0, older than 3."""
    model = relu(9, 0)
    model.ClearField("ir_version")
    assert convert_version(model, 13).ir_version == 7
    del model.opset_import[:]
    model.ir_version = 3
    with pytest.raises(InvalidModel):
        convert_version(model, 13)


def test_constants_of_graphs_within_follow_the_ir_version_too() -> None:
    then, other = (
        helper.make_graph(
            [node("Squeeze", ["x"], [name], axes=[0])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])],
        )
        for name in ("t", "e")
    )
    choice = node("If", ["yes"], ["y"], then_branch=then, else_branch=other)
    model = build([choice], {"x": X[:1], "yes": np.array(True)}, ["y"], 11, ir_version=3)
    low = convert_version(model, 12)
    assert low.ir_version == 7
    high = convert_version(model, 13)
    assert [len(each.g.initializer) for each in high.graph.node[0].attribute] == [1, 1]
