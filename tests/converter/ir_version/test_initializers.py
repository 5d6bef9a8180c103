"""Below IR version 4, initializers become graph inputs, and Constant nodes in subgraphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import Array, assert_equal, op_types, run
from support.ir_models import X, node, plain_model

from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused

WEIGHTS = {
    "scalar": np.float32(2),
    "matrix": np.ones((2, 3), np.float32),
    "no elements": np.zeros((0, 3), np.float32),
    "integers": np.array([1, 2], np.int64),
    "strings": np.array(["a", "b"], object),
}


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
def test_adds_input_for_initializer(weight: Array) -> None:
    model = plain_model(initializers={"w": np.asarray(weight)})
    before = list(model.graph.input)
    result = convert_version(model, ir_version=3)
    assert list(result.graph.input[:-1]) == before
    added = result.graph.input[-1].type.tensor_type
    assert added.elem_type == model.graph.initializer[0].data_type
    assert [each.dim_value for each in added.shape.dim] == list(np.shape(weight))
    assert list(result.graph.initializer) == list(model.graph.initializer)
    onnx.checker.check_model(result)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


def test_keeps_initializer_that_is_an_input() -> None:
    model = plain_model(nodes=[node("Add", ["x", "w"], ["y"])], initializers={"w": X, "v": X})
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [2, 3]))
    result = convert_version(model, ir_version=3)
    assert [each.name for each in result.graph.input] == ["x", "w", "v"]


def branch(name: str, names: Sequence[str]) -> onnx.GraphProto:
    """Build a branch that adds two local initializers; both branches use the same names."""
    nodes = [node("Add", ["x", "w"], [f"{name}_s"]), node("Add", [f"{name}_s", "v"], [name])]
    weights = [numpy_helper.from_array(X + position, each) for position, each in enumerate(names)]
    graph: onnx.GraphProto = helper.make_graph(
        nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])], weights
    )
    return graph


@pytest.mark.parametrize("choice", [0, 1], ids=["else", "then"])
def test_subgraph_initializers_become_leading_constants(choice: int) -> None:
    branches = {"then_branch": branch("t", ["w", "v"]), "else_branch": branch("e", ["v", "w"])}
    nodes = [node("Cast", ["c"], ["yes"], to=TensorProto.BOOL), node("If", ["yes"], ["y"], **branches)]
    model = plain_model(nodes=nodes, initializers={"c": np.array(choice, np.int64)})
    result = convert_version(model, ir_version=3)
    for attribute in result.graph.node[1].attribute:
        assert [each.op_type for each in attribute.g.node] == ["Constant", "Constant", "Add", "Add"]
        assert not attribute.g.initializer
    onnx.checker.check_model(result)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


def test_adds_inputs_for_new_constants() -> None:
    """Below opset 9, Constant supports floats only, but the repeats of Tile are integers."""
    nodes = [node("Unsqueeze", ["x", "axes"], ["u"]), node("CenterCropPad", ["u", "size"], ["c"])]
    nodes += [node("Reshape", ["c", "size"], ["y"])]
    weights = {"axes": np.array([0]), "size": np.array([1, 2, 3])}
    model = plain_model(nodes=nodes, initializers=weights)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    result = convert_version(model, 8)
    assert result.ir_version == 3
    inputs = {each.name for each in result.graph.input}
    assert {each.name for each in result.graph.initializer} <= inputs
    assert "Constant" not in op_types(result)
    onnx.shape_inference.infer_shapes(result, check_type=True, strict_mode=True)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


@pytest.mark.parametrize("opset", [8, 12], ids=["floats only", "any type"])
def test_moves_subgraph_integers_that_no_constant_can_hold(opset: int) -> None:
    nodes = [node("Tile", ["x", "times"], ["t"]), node("Add", ["t", "w"], ["a"])]
    weights = [numpy_helper.from_array(np.array([1, 2]), "times"), numpy_helper.from_array(X[:, :1], "w")]
    value = helper.make_tensor_value_info("a", TensorProto.FLOAT, [2, 6])
    then_graph = helper.make_graph(nodes, "then", [], [value], weights)
    else_graph = helper.make_graph(
        [node("Concat", ["x", "x"], ["b"], axis=1)],
        "else",
        [],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, [2, 6])],
    )
    main_nodes = [node("Cast", ["c"], ["yes"], to=TensorProto.BOOL)]
    main_nodes.append(node("If", ["yes"], ["y"], then_branch=then_graph, else_branch=else_graph))
    model = plain_model(nodes=main_nodes, initializers={"c": np.array(1, np.int64)})
    model.opset_import[0].version = opset
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 6]))
    result = convert_version(model, ir_version=3)
    assert [each.name for each in result.graph.input] == ["x", "c", *(["times"] if opset < 9 else [])]
    onnx.shape_inference.infer_shapes(result, check_type=True, strict_mode=True)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


def test_subgraph_integers_keep_their_doc_string() -> None:
    """Below opset 9, a Cast of a double Constant holds an integer whose name is not unique."""
    weight = numpy_helper.from_array(np.array([1, 1]), "times")
    weight.doc_string = "number of copies"
    value = helper.make_tensor_value_info("a", TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph([node("Tile", ["x", "times"], ["a"])], "branch", [], [value], [weight])
    choice = node("If", ["yes"], ["y"], then_branch=graph, else_branch=graph)
    model = plain_model(8, [choice], initializers={"yes": np.array(True)})
    result = convert_version(model, ir_version=3)
    for attribute in result.graph.node[0].attribute:
        assert [each.op_type for each in attribute.g.node] == ["Constant", "Cast", "Tile"]
        assert attribute.g.node[1].doc_string == "number of copies"
    assert_equal(run(result, {"x": X}), [X])


@pytest.mark.parametrize("opset", [7, 8, 12])
@pytest.mark.parametrize("kind", ["float", "int64", "bool"])
def test_branch_produces_the_initializer_that_it_returns(kind: str, opset: int) -> None:
    text = f"""<ir_version: 4, opset_import: ["" : {opset}]>
    main (bool c, {kind}[2] x) => ({kind}[2] y) {{
        y = If (c) <
            then_branch = t () => ({kind}[2] k) <{kind}[2] k = {{1, 0}}> {{ }},
            else_branch = e () => ({kind}[2] r) {{ r = Identity (x) }}>
    }}"""
    model = onnx.parser.parse_model(text)
    result = convert_version(model, ir_version=3)
    onnx.checker.check_model(result, full_check=True)
    for choice in (False, True):
        feeds = {"c": np.array(choice), "x": np.array([0, 1], kind.replace("float", "float32"))}
        assert_equal(run(result, feeds), run(model, feeds))


SHADOWING = {
    "initializer": (
        "r = Mul (x, w)",
        "<float[2] w = {7, 8}>",
        "graph / If.then_branch, initializer 'w'",
    ),
    "node output": (
        "r = Mul (x, o)",
        "<float[2] o = {7, 8}>",
        "graph / If.then_branch, initializer 'o'",
    ),
    "two levels up": (
        """r = If (c) <
            then_branch = t2 () => (float[2] s) <float[2] w = {7, 8}> { s = Mul (x, w) },
            else_branch = e2 () => (float[2] s) { s = Neg (x) }>""",
        "",
        "graph / If.then_branch / If.then_branch, initializer 'w'",
    ),
}


def shadowing_model(name: str) -> onnx.ModelProto:
    nodes, weights, _ = SHADOWING[name]
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    main (float[2] x, bool c) => (float[2] y) <float[2] w = {{1, 2}}> {{
        o = Neg (w)
        b = If (c) <
            then_branch = t () => (float[2] r) {weights} {{ {nodes} }},
            else_branch = e () => (float[2] r) {{ r = Add (x, w) }}>
        y = Add (b, o)
    }}"""
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", SHADOWING)
def test_refuses_initializer_with_the_name_of_an_enclosing_value(name: str, is_sparse: bool) -> None:
    model = shadowing_model(name)
    if is_sparse:
        make_sparse(model.graph.node[1].attribute[0].g)
    with pytest.raises(
        ConversionRefused, match="must not have the name of a value of an enclosing"
    ) as caught:
        convert_version(model, ir_version=3)
    assert [each.place for each in caught.value.refusals] == [SHADOWING[name][2]]


def make_sparse(graph: onnx.GraphProto) -> None:
    """Replace the initializers of a graph and its subgraphs by sparse initializers."""
    for tensor in graph.initializer:
        sparse = graph.sparse_initializer.add(dims=tensor.dims)
        sparse.values.CopyFrom(tensor)
        sparse.indices.CopyFrom(numpy_helper.from_array(np.arange(tensor.dims[0])))
    graph.ClearField("initializer")
    for attribute in (each for inner in graph.node for each in inner.attribute if each.HasField("g")):
        make_sparse(attribute.g)


@pytest.mark.parametrize("name", SHADOWING)
def test_keeps_ir_version_for_initializer_with_the_name_of_an_enclosing_value(name: str) -> None:
    model = shadowing_model(name)
    result = convert_version(model, 8)
    assert result.ir_version == 4
    for choice in (False, True):
        feeds = {"x": np.array([3, 4], np.float32), "c": np.array(choice)}
        assert_equal(run(result, feeds), run(model, feeds))
