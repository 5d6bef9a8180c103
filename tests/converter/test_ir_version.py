"""The IR version: that of the release with the opsets, if no more is needed; constants are what it allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from support.running import Array, assert_equal, build, op_types, run

from opshift.converter.convert import convert, convert_version
from opshift.converter.errors import ConversionRefused
from opshift.model.errors import InvalidModel, UsageError
from opshift.registry.registry import default_registry

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
    ("lowered to that of the release with the opset", 21, 10, 13, 7),
    ("lowered over many releases", 21, 10, 7, 3),
    ("kept on the way down where it is that of the release", 18, 8, 15, 8),
    ("kept on the way down where it is less than it should be", 21, 4, 13, 4),
    ("kept where the opset stays, though it is too low for it", 17, 3, 17, 3),
    ("kept on the way up where it is higher than any release has", 13, 99, 21, 99),
    ("kept on the way down where what it adds is not known", 21, 99, 13, 99),
    ("kept where the opset stays, though it is higher than needed", 13, 12, 13, 12),
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


def test_what_is_lowered_computes_the_same() -> None:
    model = relu(21, 10)
    assert_equal(run(convert_version(model, 7), {"x": X}), run(model, {"x": X}))


def test_a_domain_that_stays_keeps_it_as_high_as_it_needs() -> None:
    scaler = node("Scaler", ["x"], ["h"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0])
    model = build(
        [scaler, node("Relu", ["h"], ["y"])], {"x": X}, ["y"], {"": 21, "ai.onnx.ml": 3}, ir_version=10
    )
    result = convert_version(model, 13)
    assert result.ir_version == 8
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


RELEASES = [
    ("lowered to what a runtime takes", 21, 10, "onnxruntime-1.10", 15, 8),
    ("lowered to what a release of ONNX has", 21, 10, "onnx-1.7", 12, 7),
    ("lowered where the opset stays", 15, 10, "onnxruntime-1.10", 15, 8),
    ("lowered where the opset rises", 13, 10, "onnxruntime-1.10", 15, 8),
    ("raised as far as the opset needs", 7, 3, "onnxruntime-1.18", 21, 10),
    ("kept where it is lower than that of the release", 21, 4, "onnx-1.12", 17, 4),
    ("lowered to that of another program", 13, 8, "windowsml-1809", 7, 3),
    ("lowered with the opset where the program says nothing of it", 21, 10, "tensorrt-8.6", 17, 8),
]


@pytest.mark.parametrize(
    ("source", "before", "target", "opset", "after"),
    [row[1:] for row in RELEASES],
    ids=[row[0] for row in RELEASES],
)
def test_for_a_release_it_is(source: int, before: int, target: str, opset: int, after: int) -> None:
    model = relu(source, before)
    result = convert_version(model, target)
    assert (result.opset_import[0].version, result.ir_version) == (opset, after)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


WANTED = [
    ("a number", 17, 21, 8, 8),
    ("a number below that of the opset", 17, 21, 4, 4),
    ("a number as text", 17, 21, "9", 9),
    ("more than needed", 21, 13, 12, 12),
    ("that of the model, on the way up", 17, 21, "keep", 8),
    ("that of the model, on the way down", 17, 13, "keep", 8),
]


@pytest.mark.parametrize(
    ("source", "target", "wanted", "after"), [row[1:] for row in WANTED], ids=[row[0] for row in WANTED]
)
def test_a_caller_can_say_it(source: int, target: int, wanted: int | str, after: int) -> None:
    model = relu(source, 8)
    result = convert_version(model, target, ir_version=wanted)
    assert (result.opset_import[0].version, result.ir_version) == (target, after)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


@pytest.mark.parametrize("wanted", range(3, 15))
def test_it_can_be_all_that_changes(wanted: int) -> None:
    model = relu(17, 8)
    result = convert_version(model, ir_version=wanted)
    model.ir_version = wanted
    assert result == model


@pytest.mark.parametrize("wanted", [2, 0, -1, 15, "newest", "", 8.5, True])
def test_what_is_no_ir_version_is_refused(wanted: Any) -> None:
    with pytest.raises(UsageError, match="is not an IR version to convert to") as caught:
        convert_version(relu(17, 8), 17, ir_version=wanted)
    assert caught.value.remedy == "pass a version from 3 to 14, or keep"


def test_an_ir_version_that_is_not_known_is_not_lowered_for_a_release() -> None:
    with pytest.raises(ConversionRefused, match="the newest known version is 14") as caught:
        convert_version(relu(21, 99), "onnx-1.12")
    assert "opshift doctor --fix" in caught.value.remedy


def test_the_argument_is_left_as_it_is() -> None:
    model = bounded(13)
    model.ir_version = 8
    before = model.SerializeToString()
    convert_version(model, ir_version=3)
    assert model.SerializeToString() == before
    assert convert_version(model, ir_version=3, inplace=True) is model
    assert model.ir_version == 3


def test_raised_from_before_3_the_opset_is_stated() -> None:
    model = relu(1, 2)
    del model.opset_import[:]
    result = convert_version(model, ir_version=4)
    assert [each.version for each in result.opset_import] == [1]


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
