"""Sound models that are unusual: converted they give the same, or they are refused for a stated reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper
from support.running import Feeds, assert_equal, build, op_types, opset_of, run, run_reference

from opshift.converter.convert import convert_version
from opshift.converter.errors import ConversionRefused
from opshift.model.errors import InvalidModel

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(2, 3, 4)
YES = np.array(True)


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **stated: Any) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs, outputs, **stated)
    return made


def branching(then: Sequence[NodeProto], otherwise: Sequence[NodeProto], output: str = "y") -> NodeProto:
    """If, whose branches return what their last nodes make."""
    bodies = {
        name: helper.make_graph(
            list(nodes), name, [], [helper.make_tensor_value_info(nodes[-1].output[0], FLOAT, None)]
        )
        for name, nodes in (("then_branch", then), ("else_branch", otherwise))
    }
    return node("If", ["yes"], [output], **bodies)


def sparse(name: str, values: Any, indices: Sequence[int], dims: Sequence[int]) -> onnx.SparseTensorProto:
    kind = helper.np_dtype_to_tensor_dtype(np.asarray(values).dtype)
    return helper.make_sparse_tensor(
        helper.make_tensor(name, kind, [len(indices)], values),
        helper.make_tensor("", INT64, [len(indices)], indices),
        dims,
    )


def captured() -> onnx.ModelProto:
    """The branches read a weight, an input and a computed value of the graph around them, two graphs up."""
    inner = branching([node("Softmax", ["s"], ["t"], axis=1)], [node("Mul", ["x", "w"], ["e"])], "i")
    nodes = [node("Neg", ["x"], ["s"]), branching([inner], [node("Softmax", ["s"], ["o"], axis=0)])]
    return build(nodes, {"x": X, "yes": YES}, ["y"], 13, initializers={"w": X[0]})


def spelled_out() -> onnx.ModelProto:
    """The default domain as `ai.onnx`, on the import and on nodes."""
    nodes = [
        node("Softmax", ["x"], ["s"], axis=1, domain="ai.onnx"),
        node("Softmax", ["s"], ["y"], axis=0),
    ]
    return build(nodes, {"x": X}, ["y"], {"ai.onnx": 13})


def spelled_out_in_a_branch() -> onnx.ModelProto:
    then = [node("Softmax", ["x"], ["t"], axis=1, domain="ai.onnx")]
    nodes = [branching(then, [node("Relu", ["x"], ["e"], domain="ai.onnx")])]
    return build(nodes, {"x": X, "yes": YES}, ["y"], {"ai.onnx": 13})


def as_of_ir_version_3() -> onnx.ModelProto:
    """Every weight is an input too."""
    nodes = [
        node("Mul", ["x", "w"], ["m"]),
        node("Squeeze", ["m"], ["s"], axes=[0]),
        node("Softmax", ["s"], ["y"], axis=0),
    ]
    feeds = {"x": X[:1], "w": X[:1]}
    return build(nodes, feeds, ["y"], 11, ir_version=3, initializers={"w": X[:1]})


def with_axes_that_may_be_given() -> onnx.ModelProto:
    nodes = [node("ReduceSum", ["x", "axes"], ["y"], keepdims=1)]
    axes = np.array([1])
    return build(nodes, {"x": X, "axes": axes}, ["y"], 13, initializers={"axes": axes})


def with_a_sparse_weight() -> onnx.ModelProto:
    """Type and rank of what Softmax reads follow from the sparse tensor alone."""
    nodes = [node("Softmax", ["s"], ["n"], axis=0), node("Add", ["n", "x"], ["y"])]
    model = build(nodes, {"x": X}, ["y"], 13)
    model.graph.sparse_initializer.append(sparse("s", np.array([1, 2], np.float32), [1, 6], [3, 4]))
    return model


def with_sparse_axes() -> onnx.ModelProto:
    nodes = [node("ReduceSum", ["x", "axes"], ["y"])]
    model = build(nodes, {"x": X}, ["y"], 13)
    model.graph.sparse_initializer.append(sparse("axes", np.array([2]), [1], [2]))
    return model


def with_inputs_left_out() -> onnx.ModelProto:
    """In the middle, and at the end."""
    nodes = [
        node("Clip", ["x", "", "high"], ["c"]),
        node("Clip", ["c", "", ""], ["d"]),
        node("Resize", ["d", "", "scales"], ["r"]),
        node("Softmax", ["r"], ["y"], axis=1),
    ]
    weights = {"high": np.array(1.5, np.float32), "scales": np.array([1, 2, 1], np.float32)}
    return build(nodes, {"x": X}, ["y"], 13, initializers=weights)


def with_outputs_left_out() -> onnx.ModelProto:
    """In the front, and at the end."""
    nodes = [
        node("Dropout", ["x"], ["d", ""]),
        node("GRU", ["d", "w", "r"], ["", "h"], hidden_size=2),
        node("Softmax", ["h"], ["y"], axis=1),
    ]
    weights = {"w": np.full((1, 6, 4), 0.1, np.float32), "r": np.full((1, 6, 2), 0.2, np.float32)}
    return build(nodes, {"x": X}, ["y"], 13, initializers=weights)


def with_unused_nodes() -> onnx.ModelProto:
    nodes = [
        node("Softmax", ["x"], ["unread"], axis=1),
        node("Softmax", ["x"], ["y"], axis=0),
    ]
    return build(nodes, {"x": X}, ["y"], 13, initializers={"unused": X})


def plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """With the default domain spelled as onnxruntime knows it in graphs within, too."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graphs = [result.graph]
    while graphs:
        for each in graphs.pop().node:
            graphs += [attribute.g for attribute in each.attribute if attribute.HasField("g")]
            if each.domain == "ai.onnx":
                each.domain = ""
    return result


ODD: dict[str, Callable[[], onnx.ModelProto]] = {
    "values of the graphs around": captured,
    "the default domain spelled out": spelled_out,
    "the default domain spelled out in a branch": spelled_out_in_a_branch,
    "weights that are inputs, at IR version 3": as_of_ir_version_3,
    "axes that may be given": with_axes_that_may_be_given,
    "a sparse weight": with_a_sparse_weight,
    "sparse axes": with_sparse_axes,
    "inputs left out": with_inputs_left_out,
    "outputs left out": with_outputs_left_out,
    "nodes that nobody reads": with_unused_nodes,
}


@pytest.mark.parametrize("target", [11, 12, 13, 18, 21])
@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_numbers_stay_the_same_with(make: Callable[[], onnx.ModelProto], target: int) -> None:
    before = make()
    weights = {each.name for each in before.graph.initializer}
    feeds: Feeds = {
        each.name: X[:1] if before.ir_version == 3 else X for each in before.graph.input if each.name == "x"
    }
    flags = ({"yes": np.array(way)} for way in (True, False))
    for flag in flags if any(each.name == "yes" for each in before.graph.input) else ({},):
        assert {*feeds, *flag} | weights >= {each.name for each in before.graph.input}
        after = convert_version(before, target)
        assert list(after.graph.input) == list(before.graph.input)
        assert list(after.graph.output) == list(before.graph.output)
        assert_equal(run(plain(after), {**feeds, **flag}), run(plain(before), {**feeds, **flag}))


@pytest.mark.parametrize("target", [11, 18])
def test_axes_that_are_given_count(target: int) -> None:
    """The caller's, not those that the model has in case there are none."""
    before = with_axes_that_may_be_given()
    feeds = {"x": X, "axes": np.array([2])}
    assert_equal(run(convert_version(before, target), feeds), run(before, feeds))


def test_the_spelling_of_the_default_domain_stays() -> None:
    after = convert_version(spelled_out(), 11)
    assert opset_of(after, "ai.onnx") == 11
    assert [each.domain for each in after.opset_import] == ["ai.onnx"]


# Without the default domain


def without_the_default_domain() -> onnx.ModelProto:
    scaler = node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.5], scale=[2.0])
    return build([scaler], {"x": X[0]}, ["y"], {"ai.onnx.ml": 1})


@pytest.mark.parametrize("target", [17, {"ai.onnx.ml": 3}], ids=["a target for it", "a target for another"])
def test_a_model_need_not_import_the_default_domain(target: Any) -> None:
    before = without_the_default_domain()
    after = convert_version(before, target)
    assert [each.domain for each in after.opset_import] == ["ai.onnx.ml"]
    assert_equal(run(after, {"x": X[0]}), run(before, {"x": X[0]}))


# Names that hide others


def test_a_value_of_a_branch_may_hide_one_around_it() -> None:
    """Not for onnxruntime; the reference reads names from the inside out. The inner `s` has another rank."""
    then = [
        node("ReduceMax", ["x"], ["s"], axes=[0], keepdims=0),
        node("Softmax", ["s"], ["n"], axis=0),
        node("Add", ["n", "x"], ["t"]),
    ]
    nodes = [node("Neg", ["x"], ["s"]), branching(then, [node("Relu", ["s"], ["e"])])]
    before = build(nodes, {"x": X, "yes": YES}, ["y"], 13)
    feeds = {"x": X, "yes": YES}
    after = convert_version(before, 12)
    assert_equal(run_reference(convert_version(after, 13), feeds), run_reference(before, feeds))


@pytest.mark.parametrize("is_deep", [False, True], ids=["in the graph", "in a graph within"])
def test_a_value_that_is_read_from_around_and_then_made_is_refused(is_deep: bool) -> None:
    """Which of the two a node means depends on where it stands; onnxruntime calls it a cycle."""
    reading = node("Neg", ["s"], ["v"])
    if is_deep:
        reading = branching([node("Neg", ["s"], ["v1"])], [node("Relu", ["s"], ["v2"])], "v")
    then = [reading, node("Cast", ["v"], ["s"], to=TensorProto.DOUBLE), node("Cast", ["s"], ["t"], to=FLOAT)]
    nodes = [node("Neg", ["x"], ["s"]), branching(then, [node("Relu", ["x"], ["e"])])]
    before = build(nodes, {"x": X, "yes": YES}, ["y"], 13)
    with pytest.raises(InvalidModel) as caught:
        convert_version(before, 11)
    assert "'s' is read from an enclosing graph and then defined again" in caught.value.reason
    assert str(caught.value.place).endswith("If.then_branch")
    assert caught.value.remedy


# Domains that nobody defined


def test_graphs_of_custom_nodes_are_converted() -> None:
    """Their nodes read values of the graph around, and are of any domain."""
    body = helper.make_graph(
        [
            node("Softmax", ["s"], ["t"], axis=1),
            node("FastConv", ["t"], ["u"], domain="com.acme", axes=[0]),
        ],
        "body",
        [],
        [helper.make_tensor_value_info("u", FLOAT, None)],
    )
    custom = node("Repeat", ["x"], ["y"], domain="com.acme", body=body, bodies=[body, body])
    before = build([node("Neg", ["x"], ["s"]), custom], {"x": X}, ["y"], {"": 13, "com.acme": 3})
    after = convert_version(before, 11)
    changed = after.graph.node[1]
    graphs = [graph for each in changed.attribute for graph in (each.graphs or [each.g])]
    assert len(graphs) == 3
    for graph in graphs:
        assert [each.op_type for each in graph.node] == ["Transpose", "Softmax", "Transpose", "FastConv"]
        assert graph.node[-1] == body.node[1]
    assert op_types(after) == op_types(before)


def test_what_a_custom_node_makes_is_of_unknown_rank() -> None:
    nodes = [node("FastConv", ["x"], ["c"], domain="com.acme"), node("Softmax", ["c"], ["y"], axis=0)]
    before = build(nodes, {"x": X}, ["y"], {"": 13, "com.acme": 3})
    with pytest.raises(ConversionRefused) as caught:
        convert_version(before, 11)
    assert "the rank of 'c' is unknown" in caught.value.reason
    assert caught.value.remedy == "declare it: add a value_info for 'c'"
