"""Nodes with subgraphs that an upgrade keeps, and that the conversion back would change."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser
from support.execution import op_types

import opshift
from opshift.converter.reversible import history

MODEL = """
    <ir_version: 5, opset_import: ["" : 10]>
    g (bool c, float[2, 3] x) => (float[] y) {
        y = If (c) <
            then_branch = t () => (float[] a) { %s },
            else_branch = e () => (float[] b) { k = Constant <value = int64[1] {-1}> ()  b = Reshape (x, k) }
        >
    }"""
BRANCHES = {
    "kept": "a = Relu (x)",
    "changed": "a = Clip <min = 0.0, max = 1.0> (x)",
    "nested": """a = If (c) <
        then_branch = t2 () => (float[] a2) { a2 = Clip <min = 0.0> (x) },
        else_branch = e2 () => (float[] b2) { k2 = Constant <value = int64[1] {6}> ()  b2 = Reshape (x, k2) }
    >""",
}


def branching_model(branch: str) -> onnx.ModelProto:
    """Return a model with branches of different ranks, which the declared types leave open."""
    model = parser.parse_model(MODEL % BRANCHES[branch])

    def clear(graph: onnx.GraphProto) -> None:
        for value in graph.output:
            value.type.tensor_type.ClearField("shape")
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    clear(attribute.g)

    clear(model.graph)
    return model


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("target", [11, 13, 18])
def test_restores_a_node_that_the_upgrade_kept(branch: str, target: int) -> None:
    model = branching_model(branch)
    newer = opshift.convert_version(model, target, reversible=True)
    assert opshift.convert_version(newer, 10) == model


def test_converts_a_kept_node_that_was_edited() -> None:
    newer = opshift.convert_version(branching_model("kept"), 11, reversible=True)
    newer.graph.node[0].attribute[0].g.node[0].op_type = "Abs"
    assert op_types(opshift.convert_version(newer, 10)) != ["If"]


def test_reports_a_kept_node_that_is_too_large_for_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_RECORDED_NODE_SIZE", 50)
    found = opshift.convert(branching_model("kept"), 11, reversible=True)
    reason = "the conversion back cannot restore it: its subgraphs are too large to record"
    assert found.report.repairs == (f"graph, node If -> y: {reason}",)
