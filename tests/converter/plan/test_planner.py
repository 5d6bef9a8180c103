"""Plans list every change and every refusal before the model is touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from support.execution import assert_equal, build, run

from opshift.converter.apply import apply_plan
from opshift.converter.convert import convert_version, plan_version
from opshift.converter.plan.changes import OpsetChange, Plan
from opshift.converter.refusals import ConversionRefused
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
    **attributes: Any,
) -> NodeProto:
    result: NodeProto = helper.make_node(op_type, inputs, outputs, name, domain=domain, **attributes)
    return result


def squeeze(data: str, output: str, name: str = "") -> NodeProto:
    return node("Squeeze", [data], [output], name, axes=[0])


def branch(output: str) -> onnx.GraphProto:
    value = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    result: onnx.GraphProto = helper.make_graph([squeeze("x", output, f"in {output}")], output, [], [value])
    return result


def model() -> onnx.ModelProto:
    """Return a model with changes in the graph, in both branches of a node, in training and in a function."""
    nodes = [
        node("Relu", ["x"], ["a"], "kept"),
        squeeze("a", "b"),
        node("Softmax", ["a"], ["c"], "soft", axis=0),
        node("If", ["yes"], ["d"], "if", then_branch=branch("t"), else_branch=branch("e")),
        node("F", ["b"], ["y"], "call", "local"),
    ]
    result = build(nodes, {"x": X, "yes": np.array(True)}, ["y"], {"": 11, "local": 1})
    info = result.training_info.add()
    info.algorithm.CopyFrom(helper.make_graph([squeeze("x", "t", "trained")], "algorithm", [], []))
    function = helper.make_function(
        "local", "F", ["p"], ["q"], [squeeze("p", "q")], [helper.make_opsetid("", 11)]
    )
    result.functions.append(function)
    return result


def planned() -> Plan:
    return plan_version(model(), 13)


def test_plans_every_graph_and_function() -> None:
    assert [each.path for each in planned().containers()] == [
        "graph",
        "graph / if.else_branch",
        "graph / if.then_branch",
        "training_info[0].initialization",
        "training_info[0].algorithm",
        "function local.F",
    ]


def test_lists_only_changed_nodes() -> None:
    plan = planned()
    assert [change.position for change in plan.graph.changes] == [1, 2]
    assert [len(each.changes) for each in plan.containers()] == [2, 1, 1, 0, 1, 1]
    assert [each.node_count for each in plan.containers()] == [5, 1, 1, 0, 1, 1]


def test_change_has_the_place_and_operator_of_the_node() -> None:
    unnamed, named = planned().graph.changes
    assert unnamed.place == "graph, node Squeeze -> b"
    assert named.place == "graph, node 'soft'"
    assert named.operator == OperatorId("ai.onnx", "Softmax", 11)
    assert str(named.result.steps[0].source.id) == "ai.onnx.Softmax:11"


def test_change_lists_the_new_nodes() -> None:
    squeeze_change, softmax = planned().graph.changes
    assert [str(each.operator.id) for each in squeeze_change.result.nodes] == ["ai.onnx.Squeeze:13"]
    assert [each.is_replacement for each in softmax.result.nodes].count(True) == 1
    assert all(each.operator.since_version <= 13 for each in softmax.result.nodes)


def test_plans_constants_where_they_are_read() -> None:
    plan = planned()
    assert len(plan.graph.constants) >= 1
    for each in plan.containers():
        new = set(each.constants)
        read = {name for change in each.changes for one in change.result.nodes for name in one.node.inputs}
        assert new <= read


def test_plans_opsets_and_ir_version() -> None:
    plan = planned()
    assert plan.opsets == (OpsetChange("ai.onnx", 11, 13),)
    assert (plan.ir.before, plan.ir.after) == (8, 8)
    assert plan_version(model(), "onnx-1.16").ir.after == 10


def test_plans_imports_of_emitted_nodes() -> None:
    """The replacement of a tree regressor in ai.onnx.ml 5 needs nodes of the default domain."""
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
    original = build([regressor], {"x": X[0]}, ["y"], {ML: 3})
    assert plan_version(original, {ML: 5}).graph.new_imports == {"ai.onnx": 21}
    assert plan_version(original, {ML: 2}).graph.new_imports == {}


def test_plan_at_the_target_is_empty() -> None:
    plan = plan_version(model(), 11)
    assert plan.opsets == ()
    assert all(each.is_empty for each in plan.containers())


def test_graph_with_a_changed_subgraph_is_not_empty() -> None:
    original = model()
    del original.graph.node[1:3]
    original.graph.node[2].input[0] = "a"
    plan = plan_version(original, 13)
    assert plan.graph.changes == []
    assert not plan.graph.is_empty


def add(ir_version: int) -> onnx.ModelProto:
    """Return a model with a weight, and with metadata of a node if the IR version has them."""
    nodes, weights = [node("Add", ["x", "w"], ["y"])], {"w": X}
    result = build(nodes, {"x": X}, ["y"], {"": 17}, ir_version=ir_version, initializers=weights)
    if ir_version >= 10:
        result.graph.node[0].metadata_props.add(key="origin", value="layer 1")
    return result


def add_with_import(domain: str, opset: int) -> onnx.ModelProto:
    """Return a model with another opset import."""
    result = add(8)
    result.opset_import.append(helper.make_opsetid(domain, opset))
    return result


def add_with_training() -> onnx.ModelProto:
    """Return a model with a graph for training."""
    result = add(8)
    algorithm = helper.make_graph([squeeze("x", "t")], "algorithm", [], [])
    result.training_info.add().algorithm.CopyFrom(algorithm)
    return result


def add_on_devices() -> onnx.ModelProto:
    """Return a model with a device configuration."""
    result = add(11)
    result.graph.node[0].device_configurations.add(configuration_id="one")
    result.configuration.add(name="one", num_devices=1)
    return result


@pytest.mark.parametrize(
    ("original", "target", "keeps_graphs"),
    [
        (add(10), {"ir_version": 8}, True),
        (add(8), {"ir_version": 4}, True),
        (add(8), {"ir_version": 3}, False),
        (add(3), {"ir_version": 4}, False),
        (add_on_devices(), {"ir_version": 10}, True),
        (add(8), {"target": 17}, True),
        (add(8), {"target": 18}, False),
        (model(), {"target": 11}, False),
        (add_with_import("com.example", 3), {"ir_version": 7}, True),
        (add_with_import("com.example", 3), {"ir_version": 7, "without": ["com.example"]}, False),
        (add_with_import("ai.onnx", 17), {"ir_version": 7}, False),
        (add_with_training(), {"ir_version": 7}, False),
        (add(8), {"ir_version": 7, "reversible": True}, False),
    ],
    ids=[
        "metadata",
        "IR version",
        "initializers become inputs",
        "inputs become optional",
        "device configurations",
        "nothing",
        "opset",
        "functions",
        "unused import",
        "removed import",
        "merged imports",
        "training",
        "conversion record",
    ],
)
def test_tells_whether_graphs_stay(
    original: onnx.ModelProto, target: dict[str, Any], *, keeps_graphs: bool
) -> None:
    plan = plan_version(original, **target)
    assert plan.keeps_graphs == keeps_graphs


def test_planning_is_deterministic() -> None:
    original = model()
    assert Report.of(plan_version(original, 13)) == Report.of(plan_version(original, 13))


def test_applies_a_plan_to_a_copy() -> None:
    original, copy = model(), model()
    apply_plan(plan_version(original, 13), copy)
    assert copy == convert_version(original, 13)
    assert original == model()


# Initializers that training updates

CLIP = "y = Clip (x, low, high)"
BRANCHES = (
    "y = If (yes) <then_branch = t () => (float[1, 2, 3] a) { a = Clip (x, low, high) },"
    " else_branch = e () => (float[1, 2, 3] b) { b = Neg (x) }>"
)
FUNCTION = '<domain: "local", opset_import: ["": 13]> F (p, q, r) => (s) {{ {} }}'


@pytest.mark.parametrize(
    ("body", "functions"),
    [
        pytest.param(CLIP, "", id="node"),
        pytest.param(BRANCHES, "", id="subgraph"),
        pytest.param("y = local.F (x, low, high)", FUNCTION.format("s = Clip (p, q, r)"), id="call"),
        pytest.param(CLIP, FUNCTION.format("s = Relu (p)"), id="node beside functions"),
    ],
)
def test_initializer_that_training_updates_stays_an_input(body: str, functions: str) -> None:
    trained = onnx.parser.parse_model(f"""
    <ir_version: 8, opset_import: ["": 13, "local": 1]>
    g (float[1, 2, 3] x) => (float[1, 2, 3] y) <float low = {{0}}, float high = {{2}}, bool yes = {{1}}>
    {{ {body} }}
    {functions}
    """)
    trained.training_info.add().update_binding.add(key="low", value="high")
    converted = convert_version(trained, 10)
    for each in (trained, converted):
        (low,) = (tensor for tensor in each.graph.initializer if tensor.name == "low")
        low.CopyFrom(numpy_helper.from_array(np.float32(1.5), "low"))
    assert_equal(run(converted, {"x": X}), run(trained, {"x": X}))


# Refusals


def refused_model() -> onnx.ModelProto:
    nodes = [
        node("Dropout", ["x"], ["a"], "drop", is_test=0),
        node("Clip", ["x"], ["b"], min=0.5),
        node("Softmx", ["b"], ["c"]),
        node("Scaler", ["c"], ["y"], "scaler", ML),
    ]
    return build(nodes, {"x": X}, ["y"], 6)


def test_refusals_have_place_operator_reason_and_remedy() -> None:
    plan = plan_version(refused_model(), 13)
    assert [(each.place, each.operator) for each in plan.refusals] == [
        ("graph, node 'drop'", "ai.onnx.Dropout:6"),
        ("graph, node Softmx -> c", "ai.onnx.Softmx"),
        ("graph, node 'scaler'", "ai.onnx.ml.Scaler"),
    ]
    assert all(each.reason and each.remedy for each in plan.refusals)


def test_refusal_is_one_line() -> None:
    (first, *_) = plan_version(refused_model(), 13).refusals
    assert str(first) == f"{first.place}: {first.operator}: {first.reason} ({first.remedy})"


def test_plans_convertible_nodes_despite_refusals() -> None:
    plan = plan_version(refused_model(), 13)
    assert [change.place for change in plan.graph.changes] == ["graph, node Clip -> b"]


def test_never_applies_a_plan_with_refusals() -> None:
    original = refused_model()
    plan = plan_version(original, 13)
    for attempt in (plan.require_possible, lambda: apply_plan(plan, original)):
        with pytest.raises(ConversionRefused) as caught:
            attempt()
        assert caught.value.refusals == plan.refusals
    assert original == refused_model()


def test_error_states_the_first_refusal_and_the_number_of_others() -> None:
    with pytest.raises(ConversionRefused) as caught:
        convert_version(refused_model(), 13)
    first = caught.value.refusals[0]
    assert caught.value.reason == f"{first.operator}: {first.reason}, and 2 more"
    assert str(caught.value.place) == first.place
    assert caught.value.remedy == first.remedy


def test_rejects_unknown_allow_values() -> None:
    with pytest.raises(UsageError) as caught:
        plan_version(model(), 13, allow="anything")  # type: ignore[arg-type]  # rejected by type checkers too
    assert "'anything'" in caught.value.reason
    assert "approximate" in caught.value.remedy
