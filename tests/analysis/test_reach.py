"""Reachable opsets of models with many refused nodes."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper, parser

from opshift import convert_version, plan_version
from opshift.analysis.reach import reach
from opshift.converter.internal_types.widen_types import types_in_model
from opshift.rewriting import rewrite_node


def chain(count: int, element_type: int = TensorProto.BFLOAT16) -> onnx.ModelProto:
    """Return a model of opset 13 with a chain of Relu nodes."""
    nodes = [helper.make_node("Relu", [f"v{n}"], [f"v{n + 1}"], f"n{n}") for n in range(count)]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("v0", element_type, [2])], [value(f"v{count}", element_type, [2])]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_groups_refused_nodes_by_the_first_opset_and_cause() -> None:
    limits = reach(chain(40))
    (limit,) = limits.limits
    (group,) = limit.groups
    assert (limit.opset, group.code, len(group.refusals)) == (12, "type.unsupported", 40)
    assert len(limits.nodes) == 40
    assert all(each.lowest == 13 and each.below for each in limits.nodes)


@pytest.mark.parametrize("count", [20, 200])
def test_plans_refused_nodes_for_few_opsets(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []
    run = rewrite_node._NodeRewriter.rewrite

    def count_and_run(self: Any, *arguments: Any) -> Any:
        planned.append(arguments)
        return run(self, *arguments)

    monkeypatch.setattr(rewrite_node._NodeRewriter, "rewrite", count_and_run)
    reach(chain(count))
    assert len(planned) <= 3 * count + 3


def test_limits_agree_with_plans_for_each_opset() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 15]>
        g (float[2] x, bfloat16[2] b, float[N, N] m) => (float[2] y, bfloat16[2] c, float d, float[2] z) {
            y = Sin (x)
            c = Relu (b)
            d = Det (m)
            seq = SequenceConstruct (x, y)
            z = SequenceAt (seq, i)
            i = Constant <value_int = 0> ()
        }
    """)
    model.graph.node.insert(0, model.graph.node.pop())
    limits = reach(model)
    refused = {
        target: {each.place for each in plan_version(model, target).refusals} for target in range(1, 29)
    }
    for node in limits.nodes:
        for opset in range(node.lowest, node.highest + 1):
            assert node.place not in refused[opset]
        if node.lowest > 1:
            assert node.place in refused[node.lowest - 1]
    convert_version(model, limits.lowest)
    assert refused[limits.lowest - 1]
    assert [each.opset for each in limits.limits] == sorted(
        (each.opset for each in limits.limits), reverse=True
    )


def test_looks_for_narrow_integers_in_one_plan_only(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []

    def count_and_search(*arguments: Any) -> Any:
        searched.append(arguments)
        return types_in_model(*arguments)

    monkeypatch.setattr("opshift.converter.internal_types.replan.types_in_model", count_and_search)
    assert reach(chain(3)).limits
    assert len(searched) == 1


def test_finds_limits_of_nodes_that_replace_sequences() -> None:
    # without sequences, the node SequenceAt becomes Gather, whose place is not in the model
    model = parser.parse_model("""
        <ir_version: 7, opset_import: ["" : 12]>
        g (double[2, 3, 4] x, int64 i) => (double[3, 4] y) {
            s = SplitToSequence <axis = 0, keepdims = 0> (x)
            y = SequenceAt (s, i)
        }
    """)
    limits = reach(model)
    refused = {target for target in range(1, 29) if plan_version(model, target).refusals}
    assert refused == set(range(1, limits.lowest))
    assert [(each.opset, each.groups[0].refusals[0].operator) for each in limits.limits] == [
        (5, "ai.onnx.Gather:11")
    ]
