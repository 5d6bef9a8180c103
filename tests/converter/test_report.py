"""Reports: what a conversion did, in numbers and sentences."""

from __future__ import annotations

import json

import numpy as np
import onnx
from onnx import TensorProto, helper
from support.running import build

from opshift.converter.convert import convert, plan_version
from opshift.converter.report import Report

X = np.ones((1, 2, 3), np.float32)


def model() -> onnx.ModelProto:
    """Eight nodes, two of them in graphs of If; five change from 10 to 13."""
    bodies = {
        name: helper.make_graph(
            [helper.make_node("Squeeze", ["x"], [name[0]], axes=[0])],
            name,
            [],
            [helper.make_tensor_value_info(name[0], TensorProto.FLOAT, None)],
        )
        for name in ("then_branch", "else_branch")
    }
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "relu"),
        helper.make_node("Clip", ["a"], ["b"], "clip", min=0.5),
        helper.make_node("Clip", ["b"], ["c"], "clip again", max=0.5),
        helper.make_node("Squeeze", ["c"], ["d"], "squeeze", axes=[0]),
        helper.make_node("If", ["yes"], ["f"], "if", **bodies),
        helper.make_node("Add", ["d", "f"], ["y"], "add"),
    ]
    return build(nodes, {"x": X, "yes": np.array(True)}, ["y"], 10)


def refused() -> onnx.ModelProto:
    nodes = [helper.make_node("Softmx", ["x"], ["a"]), helper.make_node("Clip", ["x"], ["y"], min=0.5)]
    return build(nodes, {"x": X}, ["y"], 10)


def test_nodes_are_counted_in_all_graphs() -> None:
    report = convert(model(), 13).report
    assert report.kept == 3
    assert len(report.changed) == 5


def test_constants_are_counted_in_all_graphs() -> None:
    """Both bounds, and the axes once for each graph."""
    result, report = convert(model(), 13)
    inner = [attribute.g for attribute in result.graph.node[4].attribute]
    assert report.constants == sum(len(each.initializer) for each in (result.graph, *inner))
    assert report.constants >= 4


def test_a_changed_node_is_told_with_its_steps() -> None:
    report = convert(model(), 13).report
    clip = report.changed[0]
    assert (clip.place, clip.operator, clip.becomes) == (
        "graph, node 'clip'",
        "ai.onnx.Clip:6",
        ("ai.onnx.Clip:13",),
    )
    assert clip.steps[0].startswith("ai.onnx.Clip:6 -> 11: ")
    assert len(clip.steps[0]) > len("ai.onnx.Clip:6 -> 11: ")


def test_nodes_of_graphs_within_are_told_with_their_graph() -> None:
    places = [each.place for each in convert(model(), 13).report.changed]
    assert places[3:] == [
        "graph / if.else_branch, node Squeeze -> e",
        "graph / if.then_branch, node Squeeze -> t",
    ]


def test_changes_are_counted_by_operator() -> None:
    assert dict(convert(model(), 13).report.operators()) == {
        ("ai.onnx.Clip:6", ("ai.onnx.Clip:13",)): 2,
        ("ai.onnx.Squeeze:1", ("ai.onnx.Squeeze:13",)): 3,
    }


def test_opsets_and_ir_version_are_told() -> None:
    report = convert(model(), 21).report
    (change,) = report.opsets
    assert (change.domain, change.source, change.target) == ("ai.onnx", 10, 21)
    assert report.ir_version == (8, 10)


def test_nothing_to_do_is_told_as_nothing() -> None:
    report = convert(model(), 10).report
    assert (report.opsets, report.kept, report.changed, report.constants) == ((), 8, (), 0)
    assert report.ir_version == (8, 8)


def test_a_plan_with_refusals_has_a_report_too() -> None:
    report = Report.of(plan_version(refused(), 13))
    assert (report.kept, len(report.changed), len(report.refusals)) == (0, 1, 1)


def test_a_report_is_plain_data() -> None:
    for report in (convert(model(), 13).report, Report.of(plan_version(refused(), 13))):
        data = json.loads(json.dumps(report.as_dict()))
        assert data["opsets"] == [{"domain": "ai.onnx", "source": 10, "target": 13}]
        assert [each["place"] for each in data["changed"]] == [each.place for each in report.changed]
        assert [each["reason"] for each in data["refusals"]] == [each.reason for each in report.refusals]


def test_the_report_of_a_conversion_is_that_of_its_plan() -> None:
    assert convert(model(), 13).report == Report.of(plan_version(model(), 13))
