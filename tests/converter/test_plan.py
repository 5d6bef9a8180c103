"""Plans: every node and what becomes of it, every refusal, before anything is touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper
from support.running import build

from opshift.converter.apply import apply_plan
from opshift.converter.convert import convert_version, plan_version
from opshift.converter.errors import ConversionRefused
from opshift.converter.plan.changes import OpsetChange, Plan
from opshift.converter.report import Report
from opshift.model.errors import UsageError
from opshift.model.operator_ids import OperatorId

X = np.ones((1, 2, 3), np.float32)
ML = "ai.onnx.ml"


def node(
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    name: str = "",
    domain: str = "",
    **stated: Any,
) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs, outputs, name, domain=domain, **stated)
    return made


def squeeze(data: str, output: str, name: str = "") -> NodeProto:
    return node("Squeeze", [data], [output], name, axes=[0])


def branch(output: str) -> onnx.GraphProto:
    value = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    made: onnx.GraphProto = helper.make_graph([squeeze("x", output, f"in {output}")], output, [], [value])
    return made


def model() -> onnx.ModelProto:
    """Something changes in the graph, in both graphs of a node, in training and in a function."""
    nodes = [
        node("Relu", ["x"], ["a"], "kept"),
        squeeze("a", "b"),
        node("Softmax", ["a"], ["c"], "soft", axis=0),
        node("If", ["yes"], ["d"], "if", then_branch=branch("t"), else_branch=branch("e")),
        node("F", ["b"], ["y"], "call", "local"),
    ]
    made = build(nodes, {"x": X, "yes": np.array(True)}, ["y"], {"": 11, "local": 1})
    info = made.training_info.add()
    info.algorithm.CopyFrom(helper.make_graph([squeeze("x", "t", "trained")], "algorithm", [], []))
    function = helper.make_function(
        "local", "F", ["p"], ["q"], [squeeze("p", "q")], [helper.make_opsetid("", 11)]
    )
    made.functions.append(function)
    return made


def planned() -> Plan:
    return plan_version(model(), 13)


def test_every_graph_and_function_is_planned() -> None:
    assert [each.path for each in planned().containers()] == [
        "graph",
        "graph / if.else_branch",
        "graph / if.then_branch",
        "training_info[0].initialization",
        "training_info[0].algorithm",
        "function local.F",
    ]


def test_only_nodes_that_change_are_listed() -> None:
    plan = planned()
    assert [change.position for change in plan.graph.changes] == [1, 2]
    assert [len(each.changes) for each in plan.containers()] == [2, 1, 1, 0, 1, 1]
    assert [each.node_count for each in plan.containers()] == [5, 1, 1, 0, 1, 1]


def test_a_change_says_where_it_is_and_what_the_node_was() -> None:
    unnamed, named = planned().graph.changes
    assert unnamed.place == "graph, node Squeeze -> b"
    assert named.place == "graph, node 'soft'"
    assert named.operator == OperatorId("ai.onnx", "Softmax", 11)
    assert str(named.result.steps[0].source.id) == "ai.onnx.Softmax:11"


def test_a_change_says_what_the_node_becomes() -> None:
    squeeze_change, softmax = planned().graph.changes
    assert [str(each.operator.id) for each in squeeze_change.result.nodes] == ["ai.onnx.Squeeze:13"]
    assert [each.is_replacement for each in softmax.result.nodes].count(True) == 1
    assert all(each.operator.since_version <= 13 for each in softmax.result.nodes)


def test_constants_are_planned_where_they_are_read() -> None:
    plan = planned()
    assert len(plan.graph.constants) >= 1
    for each in plan.containers():
        new = set(each.constants)
        read = {name for change in each.changes for one in change.result.nodes for name in one.node.inputs}
        assert new <= read


def test_opsets_and_ir_version_are_planned() -> None:
    plan = planned()
    assert plan.opsets == (OpsetChange("ai.onnx", 11, 13),)
    assert (plan.ir.before, plan.ir.after) == (8, 8)
    assert plan_version(model(), "onnx-1.16").ir.after == 10


def test_domains_that_new_nodes_bring_are_planned() -> None:
    """Later classifiers and regressors of trees need nodes of the default domain around them."""
    trees: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
        "base_values": [3.0],
    }
    regressor = node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, n_targets=1, **trees)
    made = build([regressor], {"x": X[0]}, ["y"], {ML: 3})
    assert plan_version(made, {ML: 5}).graph.new_imports == {"ai.onnx": 21}
    assert plan_version(made, {ML: 2}).graph.new_imports == {}


def test_a_plan_without_anything_to_do_says_so() -> None:
    plan = plan_version(model(), 11)
    assert plan.opsets == ()
    assert all(each.is_empty for each in plan.containers())


def test_a_graph_with_a_change_within_is_not_empty() -> None:
    made = model()
    del made.graph.node[1:3]
    made.graph.node[2].input[0] = "a"
    plan = plan_version(made, 13)
    assert plan.graph.changes == []
    assert not plan.graph.is_empty


def test_planning_twice_gives_the_same() -> None:
    made = model()
    assert Report.of(plan_version(made, 13)) == Report.of(plan_version(made, 13))


def test_a_plan_is_applied_to_a_copy_of_its_model() -> None:
    made, copy = model(), model()
    apply_plan(plan_version(made, 13), copy)
    assert copy == convert_version(made, 13)
    assert made == model()


# Refusals


def refused() -> onnx.ModelProto:
    nodes = [
        node("Dropout", ["x"], ["a"], "drop", is_test=0),
        node("Clip", ["x"], ["b"], min=0.5),
        node("Softmx", ["b"], ["c"]),
        node("Scaler", ["c"], ["y"], "scaler", ML),
    ]
    return build(nodes, {"x": X}, ["y"], 6)


def test_every_refusal_has_its_place_its_operator_its_reason_and_a_remedy() -> None:
    plan = plan_version(refused(), 13)
    assert [(each.place, each.operator) for each in plan.refusals] == [
        ("graph, node 'drop'", "ai.onnx.Dropout:6"),
        ("graph, node Softmx -> c", "ai.onnx.Softmx"),
        ("graph, node 'scaler'", "ai.onnx.ml.Scaler"),
    ]
    assert all(each.reason and each.remedy for each in plan.refusals)


def test_a_refusal_is_one_line() -> None:
    (first, *_) = plan_version(refused(), 13).refusals
    assert str(first) == f"{first.place}: {first.operator}: {first.reason} ({first.remedy})"


def test_what_can_be_converted_is_planned_beside_refusals() -> None:
    plan = plan_version(refused(), 13)
    assert [change.place for change in plan.graph.changes] == ["graph, node Clip -> b"]


def test_a_plan_with_refusals_is_never_applied() -> None:
    made = refused()
    plan = plan_version(made, 13)
    for attempt in (plan.require_possible, lambda: apply_plan(plan, made)):
        with pytest.raises(ConversionRefused) as caught:
            attempt()
        assert caught.value.refusals == plan.refusals
    assert made == refused()


def test_the_error_tells_the_first_refusal_and_how_many_there_are() -> None:
    with pytest.raises(ConversionRefused) as caught:
        convert_version(refused(), 13)
    first = caught.value.refusals[0]
    assert caught.value.reason == f"{first.operator}: {first.reason}, and 2 more"
    assert str(caught.value.place) == first.place
    assert caught.value.remedy == first.remedy


def test_what_may_be_allowed_has_a_name() -> None:
    with pytest.raises(UsageError) as caught:
        plan_version(model(), 13, allow="anything")
    assert "'anything'" in caught.value.reason
    assert "approximate" in caught.value.remedy
