"""Downgrade of LabelEncoder: tensors become lists, and pairs become one list of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import Array, assert_equal, build, opset_of, run, run_reference

from opshift import ConversionRefused, convert_version

ML = "ai.onnx.ml"
STRINGS: Array = np.array(["b", "a", "unknown", "c", ""], object).reshape(1, 5)
INTEGERS: Array = np.array([[2, 0, 1], [3, -1, 9]], np.int64)


def _model(data: Array, result: int, opset: int, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node("LabelEncoder", ["x"], ["y"], name="node", domain=ML, **attributes)
    model = build([node], {}, {"y": result}, {ML: opset, "": 17})
    input_type = TensorProto.STRING if data.dtype == object else helper.np_dtype_to_tensor_dtype(data.dtype)
    model.graph.input.append(helper.make_tensor_value_info("x", input_type, data.shape))
    return model


def _tensor(values: list[Any], dtype: type) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, dtype))


def _outputs(model: onnx.ModelProto, data: Array) -> list[Any]:
    """Run the model in onnxruntime, or in onnx.reference for int16, which onnxruntime does not support."""
    return run_reference(model, {"x": data}) if data.dtype == np.int16 else run(model, {"x": data})


@pytest.mark.parametrize(
    ("data", "result", "attributes"),
    [
        pytest.param(
            STRINGS,
            TensorProto.FLOAT,
            {"keys_tensor": _tensor(["a", "b"], object), "values_tensor": _tensor([1.5, 2.5], np.float32)},
            id="strings to floats",
        ),
        pytest.param(
            INTEGERS,
            TensorProto.STRING,
            {
                "keys_tensor": _tensor([0, 2, 9], np.int64),
                "values_tensor": _tensor(["p", "q", "r"], object),
                "default_tensor": _tensor(["none"], object),
            },
            id="integers to strings with default",
        ),
        pytest.param(
            INTEGERS.astype(np.int16),
            TensorProto.INT16,
            {
                "keys_tensor": _tensor([0, 2, 0], np.int16),
                "values_tensor": _tensor([7, 8, 9], np.int16),
                "default_tensor": _tensor([-5], np.int16),
            },
            id="int16 with a repeated key",
        ),
        pytest.param(
            INTEGERS,
            TensorProto.DOUBLE,
            {
                "keys_int64s": [0, 2],
                "values_tensor": _tensor([0.5, 0.25], np.float64),
                "default_tensor": _tensor([0.125], np.float64),
            },
            id="doubles that float represents exactly",
        ),
        pytest.param(
            INTEGERS.astype(np.float32),
            TensorProto.INT64,
            {"keys_floats": [0.0, 2.0], "values_int64s": [5, 6], "default_int64": 7},
            id="existing lists",
        ),
    ],
)
def test_converts_tensors_to_lists(data: Array, result: int, attributes: dict[str, Any]) -> None:
    model = _model(data, result, 4, **attributes)
    converted = convert_version(model, {ML: 2})
    assert opset_of(converted, ML) == 2
    assert not [
        each.name for node in converted.graph.node for each in node.attribute if "tensor" in each.name
    ]
    assert_equal(run(converted, {"x": data}), _outputs(model, data))


@pytest.mark.parametrize(
    ("data", "result", "attributes"),
    [
        pytest.param(
            STRINGS,
            TensorProto.INT64,
            {"keys_strings": ["a", "b", "c"], "values_int64s": [2, 0, 1], "default_int64": 42},
            id="strings to indices in any order",
        ),
        pytest.param(
            INTEGERS,
            TensorProto.STRING,
            {"keys_int64s": [1, 0, 2], "values_strings": ["p", "q", "p"], "default_string": "none"},
            id="indices to strings with a repeated string",
        ),
        pytest.param(
            STRINGS,
            TensorProto.INT64,
            {"keys_tensor": _tensor(["a", "b"], object), "values_tensor": _tensor([0, 1], np.int64)},
            id="tensors",
        ),
    ],
)
def test_converts_pairs_to_classes(data: Array, result: int, attributes: dict[str, Any]) -> None:
    model = _model(data, result, 4, **attributes)
    converted = convert_version(model, {ML: 1})
    assert {each.name for each in converted.graph.node[0].attribute} >= {"classes_strings"}
    assert_equal(run(converted, {"x": data}), run(model, {"x": data}))


@pytest.mark.parametrize(
    ("target", "attributes", "reason"),
    [
        pytest.param(
            2,
            {"keys_tensor": _tensor([0.1], np.float64), "values_int64s": [1]},
            "the keys are double or contain NaN; version 2 matches such keys differently",
            id="double keys",
        ),
        pytest.param(
            2,
            {"keys_int64s": [1], "values_tensor": _tensor([0.1], np.float64)},
            "the values are double, and float does not represent them exactly",
            id="double values",
        ),
        pytest.param(
            1,
            {"keys_int64s": [1, 2], "values_strings": ["a", "b"]},
            "version 1 maps only distinct strings to or from the indices 0, 1, 2 and so on",
            id="indices that start at 1",
        ),
        pytest.param(
            1,
            {"keys_int64s": [0, 1], "values_floats": [1.0, 2.0]},
            "version 1 maps only distinct strings to or from the indices 0, 1, 2 and so on",
            id="no strings",
        ),
    ],
)
def test_refuses_unsupported_mappings(target: int, attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConversionRefused) as caught:
        convert_version(_model(INTEGERS, TensorProto.FLOAT, 4, **attributes), {ML: target})
    assert [each.reason for each in caught.value.refusals] == [reason]
