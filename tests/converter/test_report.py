"""Reports summarize a conversion in numbers and sentences."""

from __future__ import annotations

import json

import numpy as np
import onnx
from onnx import parser

from opshift.converter.convert import convert, plan_version
from opshift.converter.report import Report

X = np.ones((1, 2, 3), np.float32)


def model() -> onnx.ModelProto:
    """Return a model of eight nodes, two of them in branches; five change between opsets 10 and 13."""
    parsed: onnx.ModelProto = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 10]>
    report (float[1, 2, 3] x, bool yes) => (float[] y) {
        [relu] a = Relu (x)
        [clip] b = Clip <min = 0.5> (a)
        ["clip again"] c = Clip <max = 0.5> (b)
        [squeeze] d = Squeeze <axes = [0]> (c)
        [if] f = If (yes) <
            else_branch = else_branch () => (float[] e) { e = Squeeze <axes = [0]> (x) },
            then_branch = then_branch () => (float[] t) { t = Squeeze <axes = [0]> (x) }
        >
        [add] y = Add (d, f)
    }
    """)
    return parsed


def refused_model() -> onnx.ModelProto:
    parsed: onnx.ModelProto = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 10]>
    refused (float[1, 2, 3] x) => (float[] y) { a = Softmx (x) y = Clip <min = 0.5> (x) }
    """)
    return parsed


def test_counts_nodes_of_all_graphs() -> None:
    report = convert(model(), 13).report
    assert report.kept == 3
    assert len(report.changed) == 5


def test_counts_constants_of_all_graphs() -> None:
    """The constants are two bounds, and the axes once per graph."""
    conversion = convert(model(), 13)
    graph = conversion.model.graph
    inner = [attribute.g for attribute in graph.node[4].attribute]
    assert conversion.report.constants == sum(len(each.initializer) for each in (graph, *inner))
    assert conversion.report.constants >= 4


def test_lists_the_steps_of_a_changed_node() -> None:
    report = convert(model(), 13).report
    clip = report.changed[0]
    assert (clip.place, clip.operator, clip.becomes) == (
        "graph, node 'clip'",
        "ai.onnx.Clip:6",
        ("ai.onnx.Clip:13",),
    )
    assert clip.steps[0].startswith("ai.onnx.Clip:6 -> 11: ")
    assert len(clip.steps[0]) > len("ai.onnx.Clip:6 -> 11: ")


def test_places_of_subgraph_nodes_name_the_subgraph() -> None:
    places = [each.place for each in convert(model(), 13).report.changed]
    assert places[3:] == [
        "graph / if.else_branch, node Squeeze -> e",
        "graph / if.then_branch, node Squeeze -> t",
    ]


def test_counts_changes_by_operator() -> None:
    assert dict(convert(model(), 13).report.operators()) == {
        ("ai.onnx.Clip:6", ("ai.onnx.Clip:13",)): 2,
        ("ai.onnx.Squeeze:1", ("ai.onnx.Squeeze:13",)): 3,
    }


def test_reports_opsets_and_ir_version() -> None:
    report = convert(model(), 21).report
    (change,) = report.opsets
    assert (change.domain, change.source, change.target) == ("ai.onnx", 10, 21)
    assert report.ir_version == (8, 10)


def test_reports_no_changes_at_the_target() -> None:
    report = convert(model(), 10).report
    assert (report.opsets, report.kept, report.changed, report.constants) == ((), 8, (), 0)
    assert report.ir_version == (8, 8)


def test_plan_with_refusals_has_a_report() -> None:
    report = Report.of(plan_version(refused_model(), 13))
    assert (report.kept, len(report.changed), len(report.refusals)) == (0, 1, 1)


def test_report_is_plain_data() -> None:
    for report in (convert(model(), 13).report, Report.of(plan_version(refused_model(), 13))):
        data = json.loads(json.dumps(report.as_dict()))
        assert data["opsets"] == [{"domain": "ai.onnx", "source": 10, "target": 13}]
        assert [each["place"] for each in data["changed"]] == [each.place for each in report.changed]
        assert [each["reason"] for each in data["refusals"]] == [each.reason for each in report.refusals]


def test_report_of_a_conversion_equals_the_report_of_its_plan() -> None:
    assert convert(model(), 13).report == Report.of(plan_version(model(), 13))
