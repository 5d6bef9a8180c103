"""`reversible=True`: converting back restores the nodes that a conversion replaced."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import assert_equal, build, op_types, run
from support.reversible import (
    CASES,
    FLOAT,
    ROW,
    Case,
    X,
    gelu_clip_gelu_model,
    ml_only_model,
    node,
    opset_imports_of,
    serialized,
    single_node_model,
)

from opshift import check
from opshift.converter.convert import convert, convert_version, plan_version
from opshift.converter.plan.changes import METADATA_KEY
from opshift.converter.reversible.record import ConversionRecord, read_record
from opshift.converter.unread_constants import remove_unread_constants
from opshift.model.graphs import nested_containers, root_graphs
from opshift.model.messages import ModelProto

IDS = [case.title for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_restores_the_whole_model(case: Case) -> None:
    """Compare every byte: the order of nodes, initializers, functions, imports and the IR version."""
    model = case.model()
    for target in case.targets:
        down = convert_version(model, target, reversible=True)
        assert down != model
        assert serialized(convert_version(down, opset_imports_of(model))) == serialized(model)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_restores_the_whole_model_after_several_conversions(case: Case) -> None:
    model = down = case.model()
    for target in case.targets:
        down = convert_version(down, target, reversible=True)
    assert serialized(convert_version(down, opset_imports_of(model))) == serialized(model)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_recording_adds_only_metadata(case: Case) -> None:
    down = convert_version(case.model(), case.targets[0], reversible=True)
    unrecorded = convert_version(case.model(), case.targets[0], ir_version=down.ir_version)
    assert [each.key for each in down.metadata_props] == [METADATA_KEY]
    del down.metadata_props[:]
    remove_unread_constants(down, names_read_by_restored_nodes(down, unrecorded))
    assert serialized(down) == serialized(unrecorded)


def names_read_by_restored_nodes(recorded: onnx.ModelProto, unrecorded: onnx.ModelProto) -> set[str]:
    """Return the initializers that only a recorded conversion keeps, for the nodes that it can restore."""
    kept, others = (
        {each.name for graph in nested_containers(root_graphs(model)) for each in graph.initializer}
        for model in (recorded, unrecorded)
    )
    return kept - others


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_preserves_outputs(case: Case) -> None:
    model = case.model()
    del model.training_info[:]
    before = run(model, case.feeds)
    down = convert_version(model, case.targets[-1], reversible=True)
    assert_equal(run(down, case.feeds), before)
    assert_equal(run(convert_version(down, opset_imports_of(model)), case.feeds), before)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_result_is_the_same_in_place_and_for_opshift_messages(case: Case) -> None:
    model = ModelProto.FromString(case.model().SerializeToString())
    convert_version(model, case.targets[0], inplace=True, reversible=True)
    assert serialized(model) == serialized(convert_version(case.model(), case.targets[0], reversible=True))
    convert_version(model, opset_imports_of(case.model()), inplace=True)
    assert serialized(model) == serialized(case.model())


@pytest.mark.parametrize("reversible", [False, True], ids=["last", "recorded"])
def test_removes_constants_that_would_change(reversible: bool) -> None:
    """In functions below opset 9, constants are Casts, and the attribute of Cast changes after opset 5."""
    body = node("Gemm", ["a", "b", "c"], ["d"], transA=1)
    function = helper.make_function(
        "local", "F", ["a", "b", "c"], ["d"], [body], [helper.make_opsetid("", 13)]
    )
    feeds = {
        name: np.ones(shape, np.float32) for name, shape in (("a", (2, 3)), ("b", (2, 4)), ("c", (1, 4)))
    }
    model = build([node("F", ["a", "b", "c"], ["y"], domain="local")], feeds, ["y"], {"": 13, "local": 1})
    model.functions.append(function)
    down = convert_version(model, 5, reversible=True)
    assert "Cast" in [each.op_type for each in down.functions[0].node]
    assert serialized(convert_version(down, 13, reversible=reversible)) == serialized(model)


def test_upgrades_are_reversible() -> None:
    nodes = [node("Clip", ["x"], ["c"], min=0.5), node("Softmax", ["c"], ["y"], axis=2)]
    model = build(nodes, {"x": X}, ["y"], 10, ir_version=5)
    up = convert_version(model, 20, reversible=True)
    assert op_types(up) != op_types(model)
    assert serialized(convert_version(up, 10)) == serialized(model)


def test_keeps_nodes_that_the_upgrade_kept() -> None:
    """A downgrade without a record replaces ThresholdedRelu, which is not experimental since opset 10."""
    model = build([node("ThresholdedRelu", ["x"], ["y"])], {"x": X}, ["y"], 7, ir_version=3)
    up = convert_version(model, 12, reversible=True)
    assert op_types(up) == op_types(model)
    assert op_types(convert_version(convert_version(model, 12), 7)) != op_types(model)
    assert serialized(convert_version(up, 7)) == serialized(model)


def test_restores_domains_and_imports() -> None:
    model = ml_only_model()
    down = convert_version(model, "ai.onnx.ml=3", allow="approximate", reversible=True)
    assert set(opset_imports_of(down)) == {"ai.onnx.ml", ""}
    assert serialized(convert_version(down, "ai.onnx.ml=5")) == serialized(model)


def test_restores_an_ir_version_below_that_of_the_opset() -> None:
    model = single_node_model(17, "Relu")
    model.ir_version = 7
    down = convert_version(model, 13, reversible=True)
    assert serialized(convert_version(down, 17)) == serialized(model)
    assert convert_version(convert_version(model, 13), 17).ir_version == 8


def test_keeps_the_ir_version_that_metadata_needs() -> None:
    model = single_node_model(20, "Gelu")
    model.graph.node[0].metadata_props.add(key="k", value="v")
    down = convert_version(model, 13, reversible=True)
    assert down.ir_version == 10
    assert serialized(convert_version(down, 20)) == serialized(model)


@pytest.mark.parametrize(
    ("feature", "ir_version"),
    [("", 8), ("attribute default", 9), ("types of values", 10), ("overload", 10)],
)
@pytest.mark.parametrize("drops_metadata", [False, True])
def test_keeps_functions(feature: str, ir_version: int, drops_metadata: bool) -> None:
    """The IR version of opset 12 has no functions; dropping metadata does not inline them."""
    nodes = [node("Neg", ["a"], ["h"]), node("Softmax", ["h"], ["b"], axis=0)]
    function = helper.make_function("l", "F", ["a"], ["b"], nodes, [helper.make_opsetid("", 18)])
    model = build([node("F", ["x"], ["y"], domain="l")], {"x": X}, ["y"], {"": 18, "l": 1}, ir_version=10)
    if feature == "attribute default":
        function.attribute_proto.append(helper.make_attribute("unused", 1))
    if feature == "types of values":
        function.value_info.append(helper.make_tensor_value_info("h", FLOAT, X.shape))
    if feature == "overload":
        function.overload = model.graph.node[0].overload = "o"
    model.functions.append(function)
    expected = serialized(model)
    if drops_metadata:
        model.graph.node[0].metadata_props.add(key="k", value="v")
    down = convert_version(model, 12, reversible=True, allow=["drop-metadata"] * drops_metadata)
    assert (down.ir_version, len(down.functions)) == (ir_version, 1)
    assert not down.graph.node[0].metadata_props
    assert not [each for each in check(down) if each.rule.startswith("ir.")]
    assert_equal(run(down, {"x": X}), run(model, {"x": X}))
    assert serialized(convert_version(down, 18)) == expected


def test_release_target_lowers_the_ir_version() -> None:
    down = convert_version(single_node_model(20, "Gelu"), "onnx-1.8", reversible=True)
    assert down.ir_version == 7
    assert convert_version(down, 20).graph.node == single_node_model(20, "Gelu").graph.node


class TestOtherTargets:
    """Targets before, beyond, and further away from the recorded opset."""

    def test_converts_the_original_to_a_target_in_between(self) -> None:
        model = single_node_model(20, "Gelu")
        down = convert_version(convert_version(model, 13, reversible=True), 9, reversible=True)
        between = convert_version(down, 13)
        assert_equal(run(between, {"x": X}), run(model, {"x": X}))
        assert op_types(between) == op_types(convert_version(model, 13))
        assert serialized(convert_version(between, 20)) == serialized(model)

    def test_converts_the_original_to_a_target_beyond(self) -> None:
        scaled = {"scale": ROW[:2], "bias": ROW[:2]}
        model = single_node_model(18, "GroupNormalization", constants=scaled, num_groups=2)
        down = convert_version(model, 17, reversible=True)
        result = convert_version(down, 21)
        assert op_types(result) == op_types(convert_version(model, 21))
        assert "GroupNormalization" in op_types(result)
        assert_equal(run(result, {"x": X}), run(model, {"x": X}))

    def test_keeps_the_record_for_targets_further_away(self) -> None:
        model = single_node_model(20, "LayerNormalization", constants={"scale": ROW})
        down = convert_version(convert_version(model, 13, reversible=True), 9)
        assert_equal(run(down, {"x": X}), run(model, {"x": X}))
        assert serialized(convert_version(down, 20)) == serialized(model)

    @pytest.mark.parametrize("target", [13, {"ai.onnx": 13}])
    def test_keeps_a_model_at_its_target_unchanged(self, target: Any) -> None:
        down = convert_version(single_node_model(20, "Gelu"), 13, reversible=True)
        assert serialized(convert_version(down, target)) == serialized(down)

    def test_writes_no_empty_record(self) -> None:
        model = single_node_model(20, "Relu")
        assert not convert_version(model, 20, reversible=True).metadata_props
        lowered = convert_version(model, 18, reversible=True)
        assert not convert_version(lowered, 20).metadata_props


def test_reports_restored_nodes() -> None:
    down = convert_version(gelu_clip_gelu_model(), 10, reversible=True)
    report = convert(down, 20).report
    first = report.changed[0]
    assert first.becomes == ("ai.onnx.Gelu:20",)
    assert first.steps == ("restored to its state before an earlier conversion: ai.onnx.Gelu:20",)
    assert first.operator.count("ai.onnx.") == 5
    assert report.kept == 0
    assert plan_version(down, 20).graph.reversal.restored


def test_record_size_is_linear_in_the_changed_nodes() -> None:
    def size(count: int) -> int:
        nodes = [node("Gelu", [f"v{i}"], [f"v{i + 1}"], f"gelu{i}") for i in range(count)]
        nodes += [node("Relu", [f"v{count}"], ["y"])]
        nodes[0].input[0] = "x"
        down = convert_version(build(nodes, {"x": X}, ["y"], 20, ir_version=9), 13, reversible=True)
        return len(down.metadata_props[0].value)

    assert size(400) < 2.5 * size(200)
    assert size(400) < 400 * 100


def test_restored_model_passes_the_checks() -> None:
    model = gelu_clip_gelu_model()
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, X.shape))
    down = convert_version(model, 13, reversible=True, check=True)
    assert serialized(convert_version(down, 20, check=True)) == serialized(model)


def test_records_nothing_by_default() -> None:
    assert not convert_version(gelu_clip_gelu_model(), 10).metadata_props


def test_keeps_other_metadata() -> None:
    model = gelu_clip_gelu_model()
    model.metadata_props.add(key="author", value="a")
    down = convert_version(model, 10, reversible=True)
    down.metadata_props.add(key="later", value="b")
    up = convert_version(down, 20)
    assert [(each.key, each.value) for each in up.metadata_props] == [("author", "a"), ("later", "b")]


def test_reads_the_record() -> None:
    record = read_record(convert_version(gelu_clip_gelu_model(), 10, reversible=True))
    assert isinstance(record, ConversionRecord)
    (part,) = record.parts
    assert part.place == ("graph",)
    assert len(part.entries) == 3
