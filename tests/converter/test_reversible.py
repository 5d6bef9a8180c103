"""`reversible=True`: what a conversion replaces comes back, node for node."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import helper
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
from support.running import assert_equal, build, op_types, run

from opshift.converter.convert import convert, convert_version, plan_version
from opshift.converter.reversible.metadata_key import METADATA_KEY
from opshift.converter.reversible.record import ConversionRecord, read_record
from opshift.model.messages import ModelProto

IDS = [case.title for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_whole_model_comes_back(case: Case) -> None:
    """Nodes in their order, initializers, functions, imports, IR version: every byte."""
    model = case.model()
    for target in case.targets:
        down = convert_version(model, target, reversible=True)
        assert down != model
        assert serialized(convert_version(down, opset_imports_of(model))) == serialized(model)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_whole_model_comes_back_from_conversions_in_a_row(case: Case) -> None:
    model = down = case.model()
    for target in case.targets:
        down = convert_version(down, target, reversible=True)
    assert serialized(convert_version(down, opset_imports_of(model))) == serialized(model)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_recording_changes_nothing_else(case: Case) -> None:
    down = convert_version(case.model(), case.targets[0], reversible=True)
    plain = convert_version(case.model(), case.targets[0], ir_version=down.ir_version)
    assert [each.key for each in down.metadata_props] == [METADATA_KEY]
    del down.metadata_props[:]
    assert serialized(down) == serialized(plain)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_numbers_stay_the_same(case: Case) -> None:
    model = case.model()
    del model.training_info[:]
    before = run(model, case.feeds)
    down = convert_version(model, case.targets[-1], reversible=True)
    assert_equal(run(down, case.feeds), before)
    assert_equal(run(convert_version(down, opset_imports_of(model)), case.feeds), before)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_in_place_and_in_the_projects_classes_it_is_the_same(case: Case) -> None:
    model = ModelProto.FromString(case.model().SerializeToString())
    convert_version(model, case.targets[0], inplace=True, reversible=True)
    assert serialized(model) == serialized(convert_version(case.model(), case.targets[0], reversible=True))
    convert_version(model, opset_imports_of(case.model()), inplace=True)
    assert serialized(model) == serialized(case.model())


def test_upwards_is_reversible_too() -> None:
    nodes = [node("Clip", ["x"], ["c"], min=0.5), node("Softmax", ["c"], ["y"], axis=2)]
    model = build(nodes, {"x": X}, ["y"], 10, ir_version=5)
    up = convert_version(model, 20, reversible=True)
    assert op_types(up) != op_types(model)
    assert serialized(convert_version(up, 10)) == serialized(model)


def test_a_node_that_stays_on_the_way_up_stays_on_the_way_back() -> None:
    """One of the newer opset would be written without ThresholdedRelu, which is official from 10 on."""
    model = build([node("ThresholdedRelu", ["x"], ["y"])], {"x": X}, ["y"], 7, ir_version=3)
    up = convert_version(model, 12, reversible=True)
    assert op_types(up) == op_types(model)
    assert op_types(convert_version(convert_version(model, 12), 7)) != op_types(model)
    assert serialized(convert_version(up, 7)) == serialized(model)


def test_domains_and_their_imports_come_back() -> None:
    model = ml_only_model()
    down = convert_version(model, "ai.onnx.ml=3", allow="approximate", reversible=True)
    assert set(opset_imports_of(down)) == {"ai.onnx.ml", ""}
    assert serialized(convert_version(down, "ai.onnx.ml=5")) == serialized(model)


def test_an_ir_version_lower_than_the_opsets_need_comes_back() -> None:
    model = single_node_model(17, "Relu")
    model.ir_version = 7
    down = convert_version(model, 13, reversible=True)
    assert serialized(convert_version(down, 17)) == serialized(model)
    assert convert_version(convert_version(model, 13), 17).ir_version == 8


def test_what_an_older_ir_version_has_no_place_for_keeps_it_newer() -> None:
    model = single_node_model(20, "Gelu")
    model.graph.node[0].metadata_props.add(key="k", value="v")
    down = convert_version(model, 13, reversible=True)
    assert down.ir_version == 10
    assert serialized(convert_version(down, 20)) == serialized(model)


def test_a_release_sets_the_ir_version_all_the_same() -> None:
    down = convert_version(single_node_model(20, "Gelu"), "onnx-1.8", reversible=True)
    assert down.ir_version == 7
    assert convert_version(down, 20).graph.node == single_node_model(20, "Gelu").graph.node


class TestOnTheWay:
    """Targets between, beyond, and away from the recorded opset."""

    def test_between_the_original_is_converted_to_the_target(self) -> None:
        model = single_node_model(20, "Gelu")
        down = convert_version(convert_version(model, 13, reversible=True), 9, reversible=True)
        between = convert_version(down, 13)
        assert_equal(run(between, {"x": X}), run(model, {"x": X}))
        assert op_types(between) == op_types(convert_version(model, 13))
        assert serialized(convert_version(between, 20)) == serialized(model)

    def test_beyond_the_original_goes_on(self) -> None:
        scaled = {"scale": ROW[:2], "bias": ROW[:2]}
        model = single_node_model(18, "GroupNormalization", constants=scaled, num_groups=2)
        down = convert_version(model, 17, reversible=True)
        result = convert_version(down, 21)
        assert op_types(result) == op_types(convert_version(model, 21))
        assert "GroupNormalization" in op_types(result)
        assert_equal(run(result, {"x": X}), run(model, {"x": X}))

    def test_further_away_the_group_goes_on_and_still_remembers(self) -> None:
        model = single_node_model(20, "LayerNormalization", constants={"scale": ROW})
        down = convert_version(convert_version(model, 13, reversible=True), 9)
        assert_equal(run(down, {"x": X}), run(model, {"x": X}))
        assert serialized(convert_version(down, 20)) == serialized(model)

    @pytest.mark.parametrize("target", [13, {"ai.onnx": 13}])
    def test_a_model_that_is_there_already_stays_as_it_is(self, target: Any) -> None:
        down = convert_version(single_node_model(20, "Gelu"), 13, reversible=True)
        assert serialized(convert_version(down, target)) == serialized(down)

    def test_nothing_to_record_leaves_no_record(self) -> None:
        model = single_node_model(20, "Relu")
        assert not convert_version(model, 20, reversible=True).metadata_props
        there = convert_version(model, 18, reversible=True)
        assert not convert_version(there, 20).metadata_props


def test_the_report_says_what_is_put_back() -> None:
    down = convert_version(gelu_clip_gelu_model(), 10, reversible=True)
    report = convert(down, 20).report
    first = report.changed[0]
    assert first.becomes == ("ai.onnx.Gelu:20",)
    assert first.steps == ("restored to its state before an earlier conversion: ai.onnx.Gelu:20",)
    assert first.operator.count("ai.onnx.") == 5
    assert report.kept == 0
    assert plan_version(down, 20).graph.reversal.restored


def test_the_record_grows_with_the_nodes_that_change() -> None:
    def size(count: int) -> int:
        nodes = [node("Gelu", [f"v{i}"], [f"v{i + 1}"], f"gelu{i}") for i in range(count)]
        nodes += [node("Relu", [f"v{count}"], ["y"])]
        nodes[0].input[0] = "x"
        down = convert_version(build(nodes, {"x": X}, ["y"], 20, ir_version=9), 13, reversible=True)
        return len(down.metadata_props[0].value)

    assert size(400) < 2.5 * size(200)
    assert size(400) < 400 * 100


def test_what_comes_back_breaks_no_rule() -> None:
    model = gelu_clip_gelu_model()
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, X.shape))
    down = convert_version(model, 13, reversible=True, check=True)
    assert serialized(convert_version(down, 20, check=True)) == serialized(model)


def test_without_it_nothing_is_recorded() -> None:
    assert not convert_version(gelu_clip_gelu_model(), 10).metadata_props


def test_other_metadata_stays() -> None:
    model = gelu_clip_gelu_model()
    model.metadata_props.add(key="author", value="a")
    down = convert_version(model, 10, reversible=True)
    down.metadata_props.add(key="later", value="b")
    up = convert_version(down, 20)
    assert [(each.key, each.value) for each in up.metadata_props] == [("author", "a"), ("later", "b")]


def test_the_record_can_be_read() -> None:
    record = read_record(convert_version(gelu_clip_gelu_model(), 10, reversible=True))
    assert isinstance(record, ConversionRecord)
    (part,) = record.parts
    assert part.place == ("graph",)
    assert len(part.entries) == 3
