"""Inlining replaces calls with the nodes of their functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import GraphProto, TensorProto, helper
from support.calls import (
    FEEDS,
    FLOAT,
    GRAPH,
    INT,
    X,
    call,
    calling_model,
    function,
    model,
    node,
    with_references,
)
from support.execution import Array, assert_equal, op_types, run

from opshift.converter.functions import expanded_calls
from opshift.converter.functions.inlining import inline_functions, inlining_obstacles
from opshift.model.graphs import nested_nodes
from opshift.model.types import declared_dims
from opshift.registry.registry import default_registry


def inlined(before: onnx.ModelProto) -> onnx.ModelProto:
    after = onnx.ModelProto()
    after.CopyFrom(before)
    inline_functions(after)
    return after


def graph(name: str, nodes: list[onnx.NodeProto], output: str) -> GraphProto:
    value = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    result: GraphProto = helper.make_graph(nodes, name, [], [value])
    return result


def nested_functions() -> onnx.ModelProto:
    """Return two nested functions, each called twice; the outer one forwards its attribute."""
    soft = function("Soft", [with_references(node("Softmax", ["a"], ["b"]), axis=("where", INT))])
    inner = with_references(call("Soft", ["a"], ["t"]), where=("axis", INT))
    outer = function("Outer", [inner, node("Relu", ["t"], ["r"]), call("Soft", ["r"], ["b"])])
    nodes = [call("Outer", ["x"], ["t"], axis=2), call("Outer", ["t"], ["y"])]
    return model(nodes, [outer, soft])


def name_clashes() -> onnx.ModelProto:
    """Values of the function and of its subgraphs have the names of values of the caller."""
    then = graph("then", [node("Relu", ["a"], ["t"]), node("Neg", ["t"], ["z"])], "z")
    leaky = with_references(node("LeakyRelu", ["a"], ["t"]), alpha=("slope", FLOAT))
    nodes = [
        node("ReduceSum", ["a"], ["s"], keepdims=0),
        node("Cast", ["s"], ["c"], to=TensorProto.BOOL),
        node("If", ["c"], ["b"], then_branch=then, else_branch=graph("else", [leaky], "t")),
    ]
    calls = [node("Neg", ["x"], ["t"]), call("F", ["t"], ["z"], slope=0.3), call("F", ["z"], ["y"])]
    return model(calls, [function("F", nodes)])


def call_in_branch() -> onnx.ModelProto:
    soft = function("Soft", [node("Softmax", ["a"], ["t"], axis=1), node("Neg", ["t"], ["b"])])
    branches = {
        "then_branch": graph("then", [call("Soft", ["x"], ["t"])], "t"),
        "else_branch": graph("else", [node("Relu", ["x"], ["e"])], "e"),
    }
    feeds = {**FEEDS, "yes": np.array(True)}
    return model([node("If", ["yes"], ["y"], **branches)], [soft], feeds=feeds)


def omitted_inputs() -> onnx.ModelProto:
    clip = node("Clip", ["a", "low", "high"], ["b"])
    body = function("Cut", [clip], inputs=("a", "low", "high"))
    nodes = [call("Cut", ["x", "", "top"], ["m"]), call("Cut", ["m"], ["y"])]
    return model(nodes, [body], initializers={"top": np.array(0.5, np.float32)})


def omitted_outputs() -> onnx.ModelProto:
    parts = node("Split", ["a"], ["b", "c"], axis=2)
    body = function("Part", [parts], outputs=("b", "c"))
    nodes = [call("Part", ["x"], ["", "m"]), call("Part", ["m"], ["y", "rest"])]
    return model(nodes, [body])


def attribute_default() -> onnx.ModelProto:
    body = function("Leak", [with_references(node("LeakyRelu", ["a"], ["b"]), alpha=("slope", FLOAT))])
    body.attribute_proto.append(helper.make_attribute("slope", 0.5))
    return model([call("Leak", ["x"], ["m"]), call("Leak", ["m"], ["y"], slope=0.1)], [body])


@pytest.mark.parametrize(
    "make",
    [
        nested_functions,
        name_clashes,
        call_in_branch,
        omitted_inputs,
        omitted_outputs,
        attribute_default,
        lambda: calling_model(function("Relu", [node("Relu", ["a"], ["n"]), node("Neg", ["n"], ["b"])])),
    ],
    ids=[
        "nested functions",
        "name clashes",
        "call in a branch",
        "omitted inputs",
        "omitted outputs",
        "attribute default",
        "function with the name of an operator in its body",
    ],
)
def test_preserves_outputs(make: Callable[[], onnx.ModelProto]) -> None:
    before = make()
    after = inlined(before)
    assert len(after.functions) == 0
    feeds = {**FEEDS, "yes": np.array(True)} if len(before.graph.input) > 1 else FEEDS
    assert_equal(run(after, feeds), run(before, feeds))


@pytest.mark.parametrize(
    ("outputs", "results", "expected"),
    [
        (("a",), ("y",), [X]),
        (("n", "n"), ("y", "z"), [-X, -X]),
        (("a", "n", "a"), ("y", "z", "w"), [X, -X, X]),
    ],
    ids=["input", "value twice", "input twice"],
)
def test_inlines_functions_that_return_inputs_or_duplicates(
    outputs: tuple[str, ...], results: tuple[str, ...], expected: list[Array]
) -> None:
    """Such functions do not run in onnxruntime."""
    body = function("F", [node("Neg", ["a"], ["n"])], outputs=outputs)
    after = inlined(model([call("F", ["x"], results)], [body], outputs=results))
    assert_equal(run(after, FEEDS), expected)


def test_keeps_names_in_graph_attributes_of_the_call() -> None:
    """Such a graph reads values of the caller, which the function cannot read."""
    nodes = [
        node("ReduceSum", ["a"], ["s"], keepdims=0),
        node("Cast", ["s"], ["c"], to=TensorProto.BOOL),
        with_references(node("If", ["c"], ["b"]), then_branch=("yes", GRAPH), else_branch=("no", GRAPH)),
    ]
    body = function("Choose", nodes, attributes=["yes", "no"])
    yes, no = graph("yes", [node("Relu", ["s"], ["p"])], "p"), graph("no", [node("Neg", ["s"], ["q"])], "q")
    calls = [node("Abs", ["x"], ["s"]), call("Choose", ["s"], ["y"], yes=yes, no=no)]
    assert_equal(run(inlined(model(calls, [body])), FEEDS), [np.abs(X)])


def test_inserts_nodes_at_the_call() -> None:
    before = nested_functions()
    before.graph.node.insert(0, node("Abs", ["x"], ["first"]))
    before.graph.node.append(node("Abs", ["y"], ["last"]))
    nodes = ["Softmax", "Relu", "Softmax"]
    assert op_types(inlined(before)) == ["Abs", *nodes, *nodes, "Abs"]


def test_producer_of_the_result_has_the_name_and_metadata_of_the_call() -> None:
    body = function("F", [node("Neg", ["a"], ["n"], name="neg"), node("Relu", ["n"], ["b"], name="relu")])
    body.node[1].metadata_props.add(key="k", value="of the node")
    call_node = call("F", ["x"], ["y"], name="call", doc_string="a note")
    for key in ("k", "l"):
        call_node.metadata_props.add(key=key, value="of the call")
    first, last = inlined(model([call_node], [body])).graph.node
    assert (first.name, first.doc_string, list(first.metadata_props)) == ("call/neg", "", [])
    assert (last.name, last.doc_string) == ("call", "a note")
    assert {each.key: each.value for each in last.metadata_props} == {"k": "of the node", "l": "of the call"}


def sharded(changed: onnx.NodeProto, *tensors: str) -> onnx.NodeProto:
    """Shard tensors of a node."""
    devices = changed.device_configurations.add(configuration_id="pair")
    for tensor in tensors:
        devices.sharding_spec.add(tensor_name=tensor, device=[0])
    return changed


def sharded_tensors(changed: onnx.NodeProto) -> list[str]:
    return [spec.tensor_name for each in changed.device_configurations for spec in each.sharding_spec]


def sharded_calls() -> onnx.ModelProto:
    """Return calls with shardings, of functions with shardings in a subgraph and of an omitted input."""
    branch = graph("branch", [sharded(node("Relu", ["t"], ["c"]), "t", "c")], "c")
    other = graph("other", [node("Neg", ["t"], ["c"])], "c")
    inner = function(
        "Inner",
        [
            sharded(node("Clip", ["a", "low"], ["t"]), "a", "low", "t"),
            node("If", ["q"], ["b"], then_branch=branch, else_branch=other),
        ],
        inputs=["a", "q", "low"],
    )
    outer = function("Outer", [call("Inner", ["a", "q"], ["b"])], inputs=["a", "q"])
    calls = [call("Outer", [f"v{index}", "k"], [f"v{index + 1}"]) for index in range(4)]
    calls = [sharded(each, each.input[0], each.output[0]) for each in calls]
    calls += [sharded(call("Outer", ["v0", "k"], [f"w{index}"]), "k") for index in range(3)]
    constant = node("Constant", [], ["k"], value=helper.make_tensor("k", TensorProto.BOOL, [], [True]))
    return model([node("Abs", ["x"], ["v0"]), constant, *calls, node("Neg", ["v4"], ["y"])], [outer, inner])


def test_renames_the_tensors_of_shardings() -> None:
    before = sharded_calls()
    after = inlined(before)
    found = [each for each in nested_nodes(after.graph) if each.device_configurations]
    assert all({*sharded_tensors(each)} <= {*each.input, *each.output} - {""} for each in found)
    counts = Counter((each.op_type, len(sharded_tensors(each))) for each in found)
    assert counts == {("Clip", 2): 7, ("Relu", 2): 7, ("Neg", 0): 7, ("If", 1): 7}
    assert_equal(run(after, FEEDS), run(before, FEEDS))


def test_nodes_have_the_devices_of_the_call_and_the_shardings_that_concern_them() -> None:
    own = node("Abs", ["n"], ["m"])
    own.device_configurations.add(configuration_id="other")
    body = function("F", [node("Neg", ["a"], ["n"]), own, node("Relu", ["m"], ["b"])], outputs=["b", "b"])
    found = inlined(model([sharded(call("F", ["x"], ["y", "z"]), "x", "y")], [body])).graph.node
    devices = [[each.configuration_id for each in node_.device_configurations] for node_ in found]
    assert [each.op_type for each in found] == ["Neg", "Abs", "Relu", "Identity"]
    assert devices == [["pair"], ["other"], ["pair"], ["pair"]]
    assert [*map(sharded_tensors, found)] == [["x"], [], [], ["y"]]


def test_nodes_in_subgraphs_have_the_devices_of_the_call() -> None:
    own = node("Abs", ["a"], ["c"])
    own.device_configurations.add(configuration_id="other")
    branches = {
        "then_branch": graph("then", [node("Relu", ["a"], ["c"])], "c"),
        "else_branch": graph("else", [own], "c"),
    }
    yes = node("Constant", [], ["q"], value=helper.make_tensor("q", TensorProto.BOOL, [], [True]))
    before = model([call("F", ["x"], ["y"])], [function("F", [yes, node("If", ["q"], ["b"], **branches)])])
    sharded(before.graph.node[0], "x")
    after = inlined(before)
    devices = {
        each.op_type: [(one.configuration_id, sharded_tensors(each)) for one in each.device_configurations]
        for each in nested_nodes(after.graph)
    }
    assert devices == {
        "Constant": [("pair", [])],
        "If": [("pair", [])],
        "Relu": [("pair", ["x"])],
        "Abs": [("other", [])],
    }
    assert_equal(run(after, FEEDS), run(before, FEEDS))


def test_copies_have_unique_node_names() -> None:
    """Nodes of one graph that share a name are an error in onnxruntime."""
    body = function("F", [node("Neg", ["a"], ["n"], name="neg"), node("Relu", ["n"], ["b"], name="relu")])
    nodes = [call("F", ["x"], ["t"]), call("F", ["t"], ["y"]), node("Abs", ["y"], ["z"], name="neg")]
    before = model(nodes, [body], outputs=("y", "z"))
    after = inlined(before)
    assert [each.name for each in after.graph.node] == ["neg_1", "relu", "neg_2", "relu_1", "neg"]
    assert_equal(run(after, FEEDS), run(before, FEEDS))


def test_changes_nothing_else() -> None:
    before = nested_functions()
    before.graph.node.append(node("Relu", ["y"], ["z"], name="kept", doc_string="a note"))
    before.graph.doc_string, before.producer_version = "of the graph", "1.2"
    before.metadata_props.add(key="k", value="v")
    after = inlined(before)
    assert after.graph.node[-1] == before.graph.node[-1]
    for model_ in (before, after):
        del model_.graph.node[:], model_.functions[:]
    assert after == before


def test_copies_value_info_under_new_names() -> None:
    body = function("F", [node("Neg", ["a"], ["n"]), node("Relu", ["n"], ["b"])])
    body.value_info.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "anb")
    before = model([node("Abs", ["x"], ["n"]), call("F", ["n"], ["y"])], [body])
    after = inlined(before)
    assert [each.name for each in after.graph.value_info] == [after.graph.node[1].output[0]] == ["n_1"]


def test_inlines_calls_in_training_graphs() -> None:
    before = nested_functions()
    before.training_info.add().algorithm.CopyFrom(graph("algorithm", [call("Soft", ["t"], ["new"])], "new"))
    assert [each.op_type for each in inlined(before).training_info[0].algorithm.node] == ["Softmax"]


def test_adds_imports_of_functions() -> None:
    body = function("F", [node("FastConv", ["a"], ["b"], "com.acme")], {"com.acme": 7, "local": 1})
    before = model([call("F", ["x"], ["y"])], [body])
    after = onnx.ModelProto.FromString(before.SerializeToString())
    inline_functions(after)
    assert {each.domain: each.version for each in after.opset_import} == {"": 11, "local": 1, "com.acme": 7}


# Obstacles


def obstacles(before: onnx.ModelProto, **targets: int) -> list[str]:
    opsets = {each.domain or "ai.onnx": each.version for each in before.opset_import}
    finals = {"ai.onnx": targets["onnx"]} if targets else {}
    return [reason for _, reason in inlining_obstacles(before, opsets, finals, default_registry())]


@pytest.mark.parametrize(
    ("op_type", "targets", "expected"),
    [
        ("Relu", {}, []),
        ("Softmax", {}, ["it is written for opset 11 of ai.onnx, the graph for opset 13"]),
        ("Softmax", {"onnx": 13}, []),
    ],
    ids=["unchanged operators", "changed operators", "changed operators, common target"],
)
def test_finds_functions_of_a_different_opset(
    op_type: str, targets: dict[str, int], expected: list[str]
) -> None:
    before = calling_model(function("F", [node(op_type, ["a"], ["b"])], 12 if op_type == "Relu" else 11), 13)
    if op_type == "Relu":
        before.opset_import[0].version = 11
    assert obstacles(before, **targets) == expected


def test_finds_different_opsets_of_undefined_domains() -> None:
    body = function("F", [node("FastConv", ["a"], ["b"], "com.acme")], {"com.acme": 7})
    before = model([call("F", ["x"], ["y"])], [body])
    before.opset_import.add(domain="com.acme", version=6)
    assert obstacles(before) == ["it is written for opset 7 of com.acme, the graph for opset 6"]


def test_limits_the_number_of_inlined_nodes() -> None:
    """Each function calls the previous one twice."""
    functions = [function("F0", [node("Relu", ["a"], ["b"])])]
    for level in range(1, 40):
        twice = [call(f"F{level - 1}", ["a"], ["m"]), call(f"F{level - 1}", ["m"], ["b"])]
        functions.append(function(f"F{level}", twice))
    (reason,) = obstacles(model([call("F39", ["x"], ["y"])], functions))
    assert "inlining would produce 549,755,813,888 nodes" in reason


def named_calls() -> onnx.ModelProto:
    """Return calls with names, subgraphs, types of inner values, omitted outputs and a forwarded input.

    The dimensions of inner values have names.
    """
    branch = graph("branch", [node("Relu", ["t"], ["c"])], "c")
    named = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N", "M", "N"])
    branch.output[0].type.CopyFrom(named)
    other = graph("other", [node("Neg", ["t"], ["c"])], "c")
    inner = function(
        "Inner",
        [node("Exp", ["a"], ["t"]), node("If", ["q"], ["b"], then_branch=branch, else_branch=other)],
        inputs=["a", "q"],
        outputs=["b", "a"],
    )
    inner.value_info.add(name="t", type=named)
    outer = function("Outer", [call("Inner", ["a", "q"], ["b", "d"], name="first")], inputs=["a", "q"])
    calls = [call("Outer", ["x", "k"], [f"v{index}"], name=f"n{index}" * (index % 2)) for index in range(5)]
    calls += [call("Inner", ["v0", "k"], ["", f"w{index}"], doc_string="why") for index in range(3)]
    constant = node("Constant", [], ["k"], value=helper.make_tensor("k", TensorProto.BOOL, [], [True]))
    return model([constant, *calls, node("Add", ["v4", "w2"], ["y"])], [outer, inner])


def test_dimensions_have_other_names_in_each_call() -> None:
    before = named_calls()
    before.graph.output.append(helper.make_tensor_value_info("v0", TensorProto.FLOAT, ["N_1", "M", 4]))
    after = inlined(before)
    then_branches = [each.attribute[1].g for each in after.graph.node if each.op_type == "If"]
    values = [*after.graph.value_info, *(each.output[0] for each in then_branches)]
    dims = Counter(declared_dims(each.type) or () for each in values)
    names = [name for first, second, last in dims for name in (first, second) if first == last]
    assert set(dims.values()) == {2}  # of a value and of the result of its branch
    assert len({*names, "N_1", "M"}) == 2 * 8 + 2


@pytest.mark.parametrize("build", [nested_functions, named_calls, sharded_calls])
def test_copied_calls_equal_expanded_ones(
    build: Callable[[], onnx.ModelProto], monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = inlined(build())
    monkeypatch.setattr(expanded_calls, "_shared_functions", lambda *_: set())
    assert inlined(build()) == copied
