"""Below IR version 6, small sparse tensors of supported element types become dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import Array, assert_equal, run
from support.ir_models import MODELS, X, node, plain_model, sparse_tensor

from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused


def floats(values: list[Any]) -> Array:
    array: Array = np.array(values, np.float32)
    return array


FLAT = np.array([1, 5], np.int64)
COORDINATES = np.array([[0, 1], [1, 2]], np.int64)


def with_sparse(values: Array, indices: Array, dims: list[int]) -> onnx.ModelProto:
    model = plain_model()
    values_proto = numpy_helper.from_array(values, "w")
    sparse = helper.make_sparse_tensor(values_proto, numpy_helper.from_array(indices, "i"), dims)
    model.graph.sparse_initializer.append(sparse)
    return model


CASES = [
    ("flat indices", floats([3, 5]), FLAT, [2, 3], [[0, 3, 0], [0, 0, 5]]),
    ("coordinates", floats([3, 5]), COORDINATES, [2, 3], [[0, 3, 0], [0, 0, 5]]),
    ("integers", np.array([-3, 5]), FLAT, [6], [0, -3, 0, 0, 0, 5]),
    ("float16", np.array([0.5, 5], np.float16), FLAT, [3, 2], [[0, 0.5], [0, 0], [0, 5]]),
    ("booleans", np.array([True, True]), FLAT, [6], [False, True, False, False, False, True]),
    ("no values", floats([]), np.zeros((0, 2), np.int64), [1, 2], [[0, 0]]),
    ("three axes", floats([7]), np.array([[1, 0, 1]]), [2, 1, 2], [[[0, 0]], [[0, 7]]]),
]


@pytest.mark.parametrize(
    ("values", "indices", "dims", "dense"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_densifies_initializer(values: Array, indices: Array, dims: list[int], dense: list[float]) -> None:
    result = convert_version(with_sparse(values, indices, dims), ir_version=5)
    (tensor,) = result.graph.initializer
    assert tensor.name == "w"
    array = numpy_helper.to_array(tensor)
    assert array.dtype == values.dtype
    assert array.tolist() == dense
    assert not result.graph.sparse_initializer


def test_reads_values_in_typed_fields() -> None:
    model = with_sparse(floats([3, 5]), FLAT, [2, 3])
    values = model.graph.sparse_initializer[0].values
    values.ClearField("raw_data")
    values.float_data.extend([3, 5])
    tensor = convert_version(model, ir_version=5).graph.initializer[0]
    assert numpy_helper.to_array(tensor).tolist() == [[0, 3, 0], [0, 0, 5]]


@pytest.mark.parametrize("feature", ["sparse_initializers", "sparse_attributes"])
def test_keeps_doc_string(feature: str) -> None:
    model = MODELS[feature]()
    graph, attributes = model.graph, model.graph.node[0].attribute
    for sparse in (*graph.sparse_initializer, *(each.sparse_tensor for each in attributes)):
        sparse.values.doc_string = "weights of layer 1"
    result = convert_version(model, ir_version=5)
    dense = [*result.graph.initializer, *(each.t for each in result.graph.node[0].attribute)]
    assert [each.doc_string for each in dense] == ["weights of layer 1"]


def local_function() -> onnx.ModelProto:
    """Build a model with a call of a local function that is named like the operator Constant."""
    model = MODELS["sparse_attributes"]()
    zeros = node("RandomNormal", [], ["b"], shape=[2, 3], scale=0.0)
    imports = [helper.make_opsetid("", 21)]
    function = helper.make_function("", "Constant", [], ["b"], [zeros], imports, ["sparse_value"])
    model.functions.append(function)
    return model


OTHERS = {
    "private operator": plain_model(nodes=[node("Sum", ["x"], ["y"], "local", sparse_value=sparse_tensor())]),
    "private Constant": plain_model(
        nodes=[node("Constant", [], ["y"], "local", sparse_value=sparse_tensor())]
    ),
    "local function": local_function(),
}


@pytest.mark.parametrize("model", OTHERS.values(), ids=OTHERS)
def test_refuses_sparse_attributes_of_other_operators(model: onnx.ModelProto) -> None:
    with pytest.raises(ConversionRefused, match="the attribute accepts only sparse tensors") as caught:
        convert_version(model, ir_version=5)
    assert "attribute 'sparse_value'" in str(caught.value.place)


def test_densifies_initializer_of_subgraph() -> None:
    sparse = with_sparse(floats([3, 5]), FLAT, [2, 3]).graph.sparse_initializer[0]
    output = helper.make_tensor_value_info("t", TensorProto.FLOAT, [2, 3])
    then_graph = helper.make_graph([node("Add", ["x", "w"], ["t"])], "then", [], [output])
    then_graph.sparse_initializer.append(sparse)
    conditional = node("If", ["yes"], ["y"], then_branch=then_graph, else_branch=then_graph)
    model = plain_model(nodes=[conditional], initializers={"yes": np.array(True)})
    for version in (5, 3):
        result = convert_version(model, ir_version=version)
        onnx.checker.check_model(result)
        assert_equal(run(result, {"x": X}), [X + floats([[0, 3, 0], [0, 0, 5]])])


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        pytest.param(with_sparse(floats([1]), np.array([0]), [2**13, 2**12]), "64 MiB", id="too large"),
        pytest.param(
            with_sparse(np.array(["a"], object), np.array([0]), [2]), "unsupported type", id="strings"
        ),
        pytest.param(with_sparse(floats([1]), np.array([7]), [2, 3]), "do not fit", id="index out of range"),
        pytest.param(with_sparse(floats([1]), np.array([1, 2]), [2, 3]), "do not fit", id="too many indices"),
    ],
)
def test_refuses_unsupported_sparse_tensor(model: onnx.ModelProto, reason: str) -> None:
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, ir_version=5)
    assert reason in caught.value.reason
    assert "graph, initializer 'w'" in str(caught.value)
    assert convert_version(model, 8).ir_version == 6
