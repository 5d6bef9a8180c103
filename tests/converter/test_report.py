"""Reports summarize a conversion in numbers and sentences."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from opshift.converter.convert import convert, plan_version
from opshift.converter.report import Report
from opshift.converter.streaming.convert_file import convert_file
from opshift.model.graphs import nested_nodes

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


@pytest.mark.parametrize("target", [10, 13])
def test_json_omits_operators_that_were_not_counted(target: int) -> None:
    data = convert(model(), target).report.as_dict()
    assert data["kept"] > 0
    assert "kept_operators" not in data


def test_concessions_is_an_alias_of_allowances() -> None:
    plan = plan_version(model(), 13, types="float=float16", allow="approximate")
    report = Report.of(plan)
    for each in (plan, report):
        warning = rf"{type(each).__name__}\.concessions is deprecated .* read allowances"
        with pytest.warns(DeprecationWarning, match=warning):
            (found,) = each.concessions
        assert found == each.allowances[0]
    assert report.as_dict()["concessions"] == report.as_dict()["allowances"]


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


def grid_sample() -> onnx.ModelProto:
    parsed: onnx.ModelProto = parser.parse_model("""
    <ir_version: 9, opset_import: ["": 20]>
    sample (float[1, 3, 8, 8] x, float[1, 8, 8, 2] grid) => (float[1, 3, 8, 8] y) {
        a = GridSample <mode = "cubic"> (x, grid) b = GridSample <mode = "cubic"> (a, grid) y = Relu (b)
    }
    """)
    return parsed


def with_function() -> onnx.ModelProto:
    """Return a model with a Clip in a function, whose bounds become Constant nodes."""
    parsed: onnx.ModelProto = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 10, "local": 1]>
    call (float[3] x) => (float[3] y) { y = local.limit (x) }
    <domain: "local", opset_import: ["": 10]>
    limit (x) => (y) { y = Clip <min = 0.5, max = 1.0> (x) }
    """)
    return parsed


def deep() -> onnx.ModelProto:
    """Return a model with an initializer in a branch, which IR version 3 makes a Constant node."""
    parsed: onnx.ModelProto = parser.parse_model("""
    <ir_version: 4, opset_import: ["": 9]>
    deep (float[3] x, bool yes) => (float[3] y) {
        y = If (yes) <
            then_branch = a () => (float[3] t) <float[3] w = {1, 2, 3}> { t = Add (x, w) },
            else_branch = b () => (float[3] e) { e = Relu (x) }
        >
    }
    """)
    return parsed


def narrow() -> onnx.ModelProto:
    """Return a model with 4-bit integers, which opset 20 lacks."""
    parsed: onnx.ModelProto = parser.parse_model("""
    <ir_version: 10, opset_import: ["": 21]>
    narrow (float[3] x) => (float[3] y) {
        scale = Constant <value = float {0.5}> ()
        zero = Constant <value = int4 {1}> ()
        q = QuantizeLinear (x, scale, zero)
        y = DequantizeLinear (q, scale, zero)
    }
    """)
    return parsed


def with_sequence() -> onnx.ModelProto:
    """Return a model with a sequence, which opset 10 lacks."""
    parsed: onnx.ModelProto = parser.parse_model("""
    <ir_version: 6, opset_import: ["": 11]>
    sequence (float[3] x) => (float[3] y) {
        several = SequenceConstruct (x, x)
        one = Constant <value = int64 {1}> ()
        y = SequenceAt (several, one)
    }
    """)
    return parsed


NODE_COUNTS = {
    "subgraphs": (model(), 13),
    "expansion": (grid_sample(), 11),
    "constants in functions": (with_function(), 13),
    "IR version without functions": (with_function(), 8),
    "IR version without initializers": (deep(), 8),
    "unchanged": (model(), 10),
    "narrow integers": (narrow(), 20),
    "sequences": (with_sequence(), 10),
}


@pytest.mark.parametrize(("source", "target"), NODE_COUNTS.values(), ids=NODE_COUNTS)
def test_counts_nodes_before_and_after(source: onnx.ModelProto, target: int) -> None:
    conversion = convert(source, target)
    counts = tuple(
        sum(1 for _ in nested_nodes(each.graph, *each.functions)) for each in (source, conversion.model)
    )
    assert conversion.report.nodes == counts
    assert conversion.report.added_nodes == counts[1] - counts[0]


def test_groups_changes_by_operator_and_replacement() -> None:
    report = convert(grid_sample(), 11).report
    (group,) = report.groups()
    assert (group.operator, group.becomes[0]) == ("ai.onnx.GridSample:20", ("ai.onnx.Add:7", 20))
    assert group.nodes == (2, report.nodes[1] - 1)
    assert group.constant_bytes == report.added_bytes == sum(each.constant_bytes for each in report.changed)
    assert report.changed[0].constant_bytes == report.added_bytes
    assert any("GridSample" in step for step in group.steps)


def test_groups_start_with_the_largest() -> None:
    groups = convert(model(), 13).report.groups()
    assert [(each.operator, each.nodes) for each in groups] == [
        ("ai.onnx.Squeeze:1", (3, 3)),
        ("ai.onnx.Clip:6", (2, 2)),
    ]


def test_reports_file_sizes(tmp_path: Path) -> None:
    onnx.save(model(), tmp_path / "in.onnx")
    report = convert_file(tmp_path / "in.onnx", tmp_path / "out.onnx", 13)
    assert report.sizes == tuple((tmp_path / name).stat().st_size for name in ("in.onnx", "out.onnx"))
    assert convert(model(), 13).report.sizes is None
    assert json.loads(json.dumps(report.as_dict()))["sizes"] == list(report.sizes)


def test_text_shows_versions_numbers_and_changes() -> None:
    assert (
        str(convert(model(), 13).report)
        == """\
ai.onnx 10 -> 13
nodes: 8 -> 8; 3 kept, 5 changed
3 x ai.onnx.Squeeze:1 -> ai.onnx.Squeeze:13
2 x ai.onnx.Clip:6 -> ai.onnx.Clip:13"""
    )
    assert str(convert(model(), 10).report) == "no versions change\nnodes: 8 -> 8; 8 kept, 0 changed"


def test_text_shows_refusals_with_the_same_reason_once() -> None:
    graph = onnx.helper.make_graph([onnx.helper.make_node("Det", ["x"], ["y"])] * 3, "g", [], [])
    old = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 11)])
    for position, node in enumerate(old.graph.node):
        node.name, node.output[0] = f"det{position}", f"y{position}"
    old.graph.input.append(onnx.helper.make_tensor_value_info("x", 1, [2, 2]))
    text = str(Report.of(plan_version(old, 10)))
    assert text.count("refused: ") == 1
    assert "refused: 3 nodes can be converted only if 'approximate' is allowed" in text
    assert "graph, node 'det0'" in text


def test_text_is_short() -> None:
    nodes = [onnx.helper.make_node(f"Unknown{each}", ["x"], [f"y{each}"]) for each in range(50)]
    graph = onnx.helper.make_graph(nodes, "g", [onnx.helper.make_tensor_value_info("x", 1, [1])], [])
    unknown = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 11)])
    lines = str(Report.of(plan_version(unknown, 13))).splitlines()
    assert (len(lines), lines[-1]) == (13, "... and 40 more")
