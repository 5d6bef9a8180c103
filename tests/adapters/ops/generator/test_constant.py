"""Constant: values become tensors below opset 12, and non-float constants initializers below opset 9."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, assert_equal, build, op_types, opset_of, run, run_reference

from opshift import convert_version

VALUES = [
    pytest.param({"value_int": -7}, TensorProto.INT64, id="int"),
    pytest.param({"value_ints": [1, 2, 3]}, TensorProto.INT64, id="ints"),
    pytest.param({"value_float": 0.1}, TensorProto.FLOAT, id="float"),
    pytest.param({"value_floats": [0.5, float("inf")]}, TensorProto.FLOAT, id="floats"),
    pytest.param({"value_string": "text"}, TensorProto.STRING, id="string"),
    pytest.param({"value_strings": ["a", "b"]}, TensorProto.STRING, id="strings"),
    pytest.param({"value": numpy_helper.from_array(np.array([[True, False]]))}, TensorProto.BOOL, id="bools"),
    pytest.param({"value": numpy_helper.from_array(np.eye(2))}, TensorProto.DOUBLE, id="doubles"),
]


def _model(element_type: int, **attributes: Any) -> onnx.ModelProto:
    return build(
        [helper.make_node("Constant", [], ["y"], name="node", **attributes)], {}, {"y": element_type}, 13
    )


@pytest.mark.parametrize("target", [12, 11, 10, 9, 8, 7])
@pytest.mark.parametrize(("attributes", "element_type"), VALUES)
def test_rewrites_values(attributes: dict[str, Any], element_type: int, target: int) -> None:
    result = convert_and_check(_model(element_type, **attributes), target, {})
    attribute_names = [each.name for each in result.graph.node[0].attribute]
    stays_constant = target > 8 or element_type in (TensorProto.FLOAT, TensorProto.DOUBLE)
    assert op_types(result) == ["Constant" if stays_constant else "Identity"]
    assert attribute_names == (
        [next(iter(attributes))] if target > 11 else ["value"] if stays_constant else []
    )


def _sparse_model() -> onnx.ModelProto:
    values = numpy_helper.from_array(np.ones(1, np.float32), "values")
    indices = numpy_helper.from_array(np.zeros(1, np.int64))
    return _model(TensorProto.FLOAT, sparse_value=helper.make_sparse_tensor(values, indices, [3]))


def test_keeps_sparse_value_at_opset_11() -> None:
    model = _sparse_model()
    result = convert_version(model, 11)
    assert opset_of(result) == 11
    assert result.graph == model.graph


SPARSE_VALUES = [
    pytest.param(np.array([1.5, -2], np.float32), [1, 4], [6], id="float"),
    pytest.param(np.array([7, -1]), [[0, 2], [1, 0]], [2, 3], id="int64 with coordinates"),
    pytest.param(np.array([], np.float64), [], [3, 1], id="all zeros"),
]


@pytest.mark.parametrize("target", [10, 9, 8, 7])
@pytest.mark.parametrize(("values", "indices", "dims"), SPARSE_VALUES)
def test_densifies_sparse_values(values: Array, indices: list[Any], dims: list[int], target: int) -> None:
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(values, "values"),
        numpy_helper.from_array(np.array(indices, np.int64), "indices"),
        dims,
    )
    expected: Array = np.zeros(dims, values.dtype)
    places = np.array(indices, np.int64)
    np.put(expected, np.ravel_multi_index(tuple(places.T), dims) if places.ndim == 2 else places, values)
    model = _model(helper.np_dtype_to_tensor_dtype(values.dtype), sparse_value=sparse)
    result = convert_and_check(model, target, {}, [expected])
    assert_equal(run_reference(result, {}), [expected], 0)


def test_refuses_a_large_sparse_value() -> None:
    values = numpy_helper.from_array(np.ones(1, np.float32), "values")
    indices = numpy_helper.from_array(np.zeros(1, np.int64))
    model = _model(TensorProto.FLOAT, sparse_value=helper.make_sparse_tensor(values, indices, [10**9]))
    refused = refusal_of(model, 9)
    assert refused.reason == "the sparse value is invalid, external, or has more than 65536 elements"
    assert refused.remedy == "store the value as a dense tensor"


@pytest.mark.parametrize("reversible", [False, True])
@pytest.mark.parametrize("target", [8, 7])
def test_replaced_constants_do_not_share_names(target: int, reversible: bool) -> None:
    """Runtimes accept Constant nodes with one name, but no other nodes."""
    values = {name: numpy_helper.from_array(np.array([number, 4])) for name, number in (("a", 1), ("b", 3))}
    nodes = [
        helper.make_node("Constant", [], [name], name="same", value=each) for name, each in values.items()
    ]
    nodes += [
        helper.make_node("Add", ["x", "a"], ["sum"], name="sum"),
        helper.make_node("Add", ["sum", "b"], ["y"], name="same"),
    ]
    feeds = {"x": np.array([5, 6])}
    model = build(nodes, feeds, {"y": TensorProto.INT64}, 11)
    result = convert_version(model, target, reversible=reversible)
    assert_equal(run(result, feeds), [np.array([9, 14])])
    assert [node.name for node in result.graph.node if node.name] == ["sum", "same"]
    if reversible:
        restored = convert_version(result, 11)
        assert [node.name for node in restored.graph.node] == [node.name for node in nodes]
