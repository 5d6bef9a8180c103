"""Valid but unusual models keep their outputs or are refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper
from support.execution import Feeds, assert_equal, build, op_types, opset_of, run, run_reference

from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused
from opshift.model.errors import InvalidModel

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(2, 3, 4)
YES = np.array(True)


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    result: NodeProto = helper.make_node(op_type, inputs, outputs, **attributes)
    return result


def if_node(then: Sequence[NodeProto], otherwise: Sequence[NodeProto], output: str = "y") -> NodeProto:
    """Return an If whose branches return the outputs of their last nodes."""
    bodies = {
        name: helper.make_graph(
            list(nodes), name, [], [helper.make_tensor_value_info(nodes[-1].output[0], FLOAT, None)]
        )
        for name, nodes in (("then_branch", then), ("else_branch", otherwise))
    }
    return node("If", ["yes"], [output], **bodies)


def sparse(name: str, values: Any, indices: Sequence[int], dims: Sequence[int]) -> onnx.SparseTensorProto:
    data_type = helper.np_dtype_to_tensor_dtype(np.asarray(values).dtype)
    return helper.make_sparse_tensor(
        helper.make_tensor(name, data_type, [len(indices)], values),
        helper.make_tensor("", INT64, [len(indices)], indices),
        dims,
    )


def outer_values() -> onnx.ModelProto:
    """Nested branches read an initializer, an input and a computed value of the main graph."""
    inner = if_node([node("Softmax", ["s"], ["t"], axis=1)], [node("Mul", ["x", "w"], ["e"])], "i")
    nodes = [node("Neg", ["x"], ["s"]), if_node([inner], [node("Softmax", ["s"], ["o"], axis=0)])]
    return build(nodes, {"x": X, "yes": YES}, ["y"], 13, initializers={"w": X[0]})


def explicit_default_domain() -> onnx.ModelProto:
    """The import and a node name the default domain `ai.onnx`."""
    nodes = [
        node("Softmax", ["x"], ["s"], axis=1, domain="ai.onnx"),
        node("Softmax", ["s"], ["y"], axis=0),
    ]
    return build(nodes, {"x": X}, ["y"], {"ai.onnx": 13})


def explicit_default_domain_in_branch() -> onnx.ModelProto:
    then = [node("Softmax", ["x"], ["t"], axis=1, domain="ai.onnx")]
    nodes = [if_node(then, [node("Relu", ["x"], ["e"], domain="ai.onnx")])]
    return build(nodes, {"x": X, "yes": YES}, ["y"], {"ai.onnx": 13})


def initializers_as_inputs() -> onnx.ModelProto:
    """Every initializer is also an input."""
    nodes = [
        node("Mul", ["x", "w"], ["m"]),
        node("Squeeze", ["m"], ["s"], axes=[0]),
        node("Softmax", ["s"], ["y"], axis=0),
    ]
    feeds = {"x": X[:1], "w": X[:1]}
    return build(nodes, feeds, ["y"], 11, ir_version=3, initializers={"w": X[:1]})


def overridable_axes() -> onnx.ModelProto:
    nodes = [node("ReduceSum", ["x", "axes"], ["y"], keepdims=1)]
    axes = np.array([1])
    return build(nodes, {"x": X, "axes": axes}, ["y"], 13, initializers={"axes": axes})


def sparse_initializer() -> onnx.ModelProto:
    """Only the sparse tensor determines the type and rank of the Softmax input."""
    nodes = [node("Softmax", ["s"], ["n"], axis=0), node("Add", ["n", "x"], ["y"])]
    model = build(nodes, {"x": X}, ["y"], 13)
    model.graph.sparse_initializer.append(sparse("s", np.array([1, 2], np.float32), [1, 6], [3, 4]))
    return model


def sparse_axes() -> onnx.ModelProto:
    nodes = [node("ReduceSum", ["x", "axes"], ["y"])]
    model = build(nodes, {"x": X}, ["y"], 13)
    model.graph.sparse_initializer.append(sparse("axes", np.array([2]), [1], [2]))
    return model


def omitted_inputs() -> onnx.ModelProto:
    """Inputs are omitted in the middle and at the end."""
    nodes = [
        node("Clip", ["x", "", "high"], ["c"]),
        node("Clip", ["c", "", ""], ["d"]),
        node("Resize", ["d", "", "scales"], ["r"]),
        node("Softmax", ["r"], ["y"], axis=1),
    ]
    weights = {"high": np.array(1.5, np.float32), "scales": np.array([1, 2, 1], np.float32)}
    return build(nodes, {"x": X}, ["y"], 13, initializers=weights)


def omitted_outputs() -> onnx.ModelProto:
    """Outputs are omitted at the start and at the end."""
    nodes = [
        node("Dropout", ["x"], ["d", ""]),
        node("GRU", ["d", "w", "r"], ["", "h"], hidden_size=2),
        node("Softmax", ["h"], ["y"], axis=1),
    ]
    weights = {"w": np.full((1, 6, 4), 0.1, np.float32), "r": np.full((1, 6, 2), 0.2, np.float32)}
    return build(nodes, {"x": X}, ["y"], 13, initializers=weights)


def unused_nodes() -> onnx.ModelProto:
    nodes = [
        node("Softmax", ["x"], ["unread"], axis=1),
        node("Softmax", ["x"], ["y"], axis=0),
    ]
    return build(nodes, {"x": X}, ["y"], 13, initializers={"unused": X})


def with_empty_default_domain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy with an empty default domain, which onnxruntime requires in subgraphs."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graphs = [result.graph]
    while graphs:
        for each in graphs.pop().node:
            graphs += [attribute.g for attribute in each.attribute if attribute.HasField("g")]
            if each.domain == "ai.onnx":
                each.domain = ""
    return result


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "values of enclosing graphs": outer_values,
    "explicit default domain": explicit_default_domain,
    "explicit default domain in a branch": explicit_default_domain_in_branch,
    "initializers as inputs at IR version 3": initializers_as_inputs,
    "overridable axes": overridable_axes,
    "sparse initializer": sparse_initializer,
    "sparse axes": sparse_axes,
    "omitted inputs": omitted_inputs,
    "omitted outputs": omitted_outputs,
    "unused nodes": unused_nodes,
}


@pytest.mark.parametrize("target", [11, 12, 13, 18, 21])
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_preserves_outputs(make: Callable[[], onnx.ModelProto], target: int) -> None:
    before = make()
    weights = {each.name for each in before.graph.initializer}
    feeds: Feeds = {
        each.name: X[:1] if before.ir_version == 3 else X for each in before.graph.input if each.name == "x"
    }
    flags = ({"yes": np.array(condition)} for condition in (True, False))
    for flag in flags if any(each.name == "yes" for each in before.graph.input) else ({},):
        assert {*feeds, *flag} | weights >= {each.name for each in before.graph.input}
        after = convert_version(before, target, keep_initializer_inputs=True)
        assert list(after.graph.input) == list(before.graph.input)
        assert list(after.graph.output) == list(before.graph.output)
        assert_equal(
            run(with_empty_default_domain(after), {**feeds, **flag}),
            run(with_empty_default_domain(before), {**feeds, **flag}),
        )


@pytest.mark.parametrize("target", [11, 18])
def test_uses_axes_from_the_caller(target: int) -> None:
    """The axes of the caller override the initializer of the model."""
    before = overridable_axes()
    feeds = {"x": X, "axes": np.array([2])}
    assert_equal(run(convert_version(before, target), feeds), run(before, feeds))


def test_keeps_the_spelling_of_the_default_domain() -> None:
    after = convert_version(explicit_default_domain(), 11)
    assert opset_of(after, "ai.onnx") == 11
    assert [each.domain for each in after.opset_import] == ["ai.onnx"]


# Without the default domain


def without_the_default_domain() -> onnx.ModelProto:
    scaler = node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.5], scale=[2.0])
    return build([scaler], {"x": X[0]}, ["y"], {"ai.onnx.ml": 1})


@pytest.mark.parametrize(
    "target", [17, {"ai.onnx.ml": 3}], ids=["default domain target", "other domain target"]
)
def test_accepts_models_without_the_default_domain(target: Any) -> None:
    before = without_the_default_domain()
    after = convert_version(before, target)
    assert [each.domain for each in after.opset_import] == ["ai.onnx.ml"]
    assert_equal(run(after, {"x": X[0]}), run(before, {"x": X[0]}))


# Shadowed names


def test_accepts_branch_values_that_shadow_outer_values() -> None:
    """Run in the reference, because onnxruntime rejects shadowing. The inner `s` has a different rank."""
    then = [
        node("ReduceMax", ["x"], ["s"], axes=[0], keepdims=0),
        node("Softmax", ["s"], ["n"], axis=0),
        node("Add", ["n", "x"], ["t"]),
    ]
    nodes = [node("Neg", ["x"], ["s"]), if_node(then, [node("Relu", ["s"], ["e"])])]
    before = build(nodes, {"x": X, "yes": YES}, ["y"], 13)
    feeds = {"x": X, "yes": YES}
    after = convert_version(before, 12)
    assert_equal(run_reference(convert_version(after, 13), feeds), run_reference(before, feeds))


@pytest.mark.parametrize("is_nested", [False, True], ids=["in the branch", "in a nested branch"])
def test_rejects_outer_reads_of_a_name_defined_later(is_nested: bool) -> None:
    """The position of a node would decide which value it reads; onnxruntime reports a cycle."""
    reading = node("Neg", ["s"], ["v"])
    if is_nested:
        reading = if_node([node("Neg", ["s"], ["v1"])], [node("Relu", ["s"], ["v2"])], "v")
    then = [reading, node("Cast", ["v"], ["s"], to=TensorProto.DOUBLE), node("Cast", ["s"], ["t"], to=FLOAT)]
    nodes = [node("Neg", ["x"], ["s"]), if_node(then, [node("Relu", ["x"], ["e"])])]
    before = build(nodes, {"x": X, "yes": YES}, ["y"], 13)
    with pytest.raises(InvalidModel) as caught:
        convert_version(before, 11)
    assert "'s' is read from an enclosing graph and then defined again" in caught.value.reason
    assert str(caught.value.place).endswith("If.then_branch")
    assert caught.value.remedy


SHADOWING_INPUTS = {
    "SequenceMap": (
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z) {
            a = SequenceConstruct (x, x)
            b = Neg (x)
            s, t = SequenceMap (a, b) <
                body = f (float[2,3,4] b, float[2,3,4] a) => (float[] c, float[] a) { c = Sub (b, a) }
            >
            one = Constant <value_int = 1> ()
            y = SequenceAt (s, one)
            z = SequenceAt (t, one)
        }""",
        13,
    ),
    "Scan": (
        """<ir_version: 8, opset_import: ["" : 13]>
        g (float[2,3,4] x) => (float[3,4] y, float[2,3,4] z) {
            zero = Constant <value_ints = [0]> ()
            s = ReduceSum <keepdims = 0> (x, zero)
            b = Neg (x)
            y, z = Scan (s, x, b) <num_scan_inputs = 2,
                body = f (float[3,4] x, float[3,4] b, float[3,4] s) => (float[3,4] u, float[3,4] t) {
                    d = Sub (b, s)
                    t = Add (d, x)
                    u = Add (t, x)
                }>
        }""",
        7,
    ),
}
"""Models with bodies whose inputs have the names of other values, which nodes before the body read."""


@pytest.mark.parametrize(("text", "target"), SHADOWING_INPUTS.values(), ids=SHADOWING_INPUTS)
def test_inputs_of_bodies_may_shadow_outer_values(text: str, target: int) -> None:
    before = onnx.parser.parse_model(text)
    onnx.checker.check_model(before, full_check=True)
    after = convert_version(before, target)
    assert {"SequenceMap", "Scan"}.isdisjoint(op_types(after))
    onnx.checker.check_model(after, full_check=True)
    assert_equal(run(after, {"x": X}), run(before, {"x": X}))


# Undefined domains


def test_converts_subgraphs_of_custom_nodes() -> None:
    """Nodes of these subgraphs read outer values and belong to any domain."""
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
        assert [each.op_type for each in graph.node[-2:]] == ["Div", "FastConv"]
        assert graph.node[-1] == body.node[1]
    assert op_types(after) == op_types(before)


def test_outputs_of_custom_nodes_have_no_rank() -> None:
    nodes = [node("FastConv", ["x"], ["c"], domain="com.acme"), node("Softmax", ["c"], ["y"], axis=0)]
    before = build(nodes, {"x": X}, ["y"], {"": 13, "com.acme": 3})
    with pytest.raises(ConversionRefused) as caught:
        convert_version(before, 11)
    assert "the rank of 'c' is unknown" in caught.value.reason
    assert caught.value.remedy == (
        "declare the shape of 'c' with --shape c=... (shapes= in Python), "
        "or try --infer-shapes (infer_shapes=True)"
    )
