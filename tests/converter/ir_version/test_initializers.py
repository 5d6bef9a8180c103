"""Below IR version 4, initializers become graph inputs, and Constant nodes in subgraphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import Array, assert_equal, op_types, run
from support.ir_models import X, node, plain_model

from opshift.converter.convert import convert_version

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
