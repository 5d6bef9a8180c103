"""LabelEncoder, back: lists for tensors, and one list of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.running import Array, assert_equal, build, opset_of, run, run_reference

from opshift import ConversionRefused, convert_version

ML = "ai.onnx.ml"
TEXTS: Array = np.array(["b", "a", "unknown", "c", ""], object).reshape(1, 5)
NUMBERS: Array = np.array([[2, 0, 1], [3, -1, 9]], np.int64)


def _model(data: Array, result: int, opset: int, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node("LabelEncoder", ["x"], ["y"], name="node", domain=ML, **attributes)
    model = build([node], {}, {"y": result}, {ML: opset, "": 17})
    kind = TensorProto.STRING if data.dtype == object else helper.np_dtype_to_tensor_dtype(data.dtype)
    model.graph.input.append(helper.make_tensor_value_info("x", kind, data.shape))
    return model


def _tensor(values: list[Any], kind: type) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, kind))


def _outputs(model: onnx.ModelProto, data: Array) -> list[Any]:
    """What onnxruntime gives, or onnx.reference for 16 bits, which onnxruntime does not take."""
    return run_reference(model, {"x": data}) if data.dtype == np.int16 else run(model, {"x": data})


@pytest.mark.parametrize(
    ("data", "result", "attributes"),
    [
        pytest.param(
            TEXTS,
            TensorProto.FLOAT,
            {"keys_tensor": _tensor(["a", "b"], object), "values_tensor": _tensor([1.5, 2.5], np.float32)},
            id="text to floats",
        ),
        pytest.param(
            NUMBERS,
            TensorProto.STRING,
            {
                "keys_tensor": _tensor([0, 2, 9], np.int64),
                "values_tensor": _tensor(["p", "q", "r"], object),
                "default_tensor": _tensor(["none"], object),
            },
            id="integers to text, with a default",
        ),
        pytest.param(
            NUMBERS.astype(np.int16),
            TensorProto.INT16,
            {
                "keys_tensor": _tensor([0, 2, 0], np.int16),
                "values_tensor": _tensor([7, 8, 9], np.int16),
                "default_tensor": _tensor([-5], np.int16),
            },
            id="short integers, one key twice",
        ),
        pytest.param(
            NUMBERS,
            TensorProto.DOUBLE,
            {
                "keys_int64s": [0, 2],
                "values_tensor": _tensor([0.5, 0.25], np.float64),
                "default_tensor": _tensor([0.125], np.float64),
            },
            id="doubles that are floats",
        ),
        pytest.param(
            NUMBERS.astype(np.float32),
            TensorProto.INT64,
            {"keys_floats": [0.0, 2.0], "values_int64s": [5, 6], "default_int64": 7},
            id="lists already",
        ),
    ],
)
def test_tensors_become_lists(data: Array, result: int, attributes: dict[str, Any]) -> None:
    model = _model(data, result, 4, **attributes)
    moved = convert_version(model, {ML: 2})
    assert opset_of(moved, ML) == 2
    assert not [each.name for node in moved.graph.node for each in node.attribute if "tensor" in each.name]
    assert_equal(run(moved, {"x": data}), _outputs(model, data))


@pytest.mark.parametrize(
    ("data", "result", "attributes"),
    [
        pytest.param(
            TEXTS,
            TensorProto.INT64,
            {"keys_strings": ["a", "b", "c"], "values_int64s": [2, 0, 1], "default_int64": 42},
            id="text to places in any order",
        ),
        pytest.param(
            NUMBERS,
            TensorProto.STRING,
            {"keys_int64s": [1, 0, 2], "values_strings": ["p", "q", "p"], "default_string": "none"},
            id="places to text, of which one comes twice",
        ),
        pytest.param(
            TEXTS,
            TensorProto.INT64,
            {"keys_tensor": _tensor(["a", "b"], object), "values_tensor": _tensor([0, 1], np.int64)},
            id="from tensors",
        ),
    ],
)
def test_pairs_become_places(data: Array, result: int, attributes: dict[str, Any]) -> None:
    model = _model(data, result, 4, **attributes)
    moved = convert_version(model, {ML: 1})
    assert {each.name for each in moved.graph.node[0].attribute} >= {"classes_strings"}
    assert_equal(run(moved, {"x": data}), run(model, {"x": data}))


@pytest.mark.parametrize(
    ("target", "attributes", "reason"),
    [
        pytest.param(
            2,
            {"keys_tensor": _tensor([0.1], np.float64), "values_int64s": [1]},
            "the keys are double, or one is NaN, which the lists of version 2 match differently",
            id="keys of double precision",
        ),
        pytest.param(
            2,
            {"keys_int64s": [1], "values_tensor": _tensor([0.1], np.float64)},
            "the values are double, and float does not represent them exactly",
            id="values of double precision",
        ),
        pytest.param(
            1,
            {"keys_int64s": [1, 2], "values_strings": ["a", "b"]},
            "version 1 maps only distinct strings to or from the indices 0, 1, 2 and so on",
            id="numbers that begin at 1",
        ),
        pytest.param(
            1,
            {"keys_int64s": [0, 1], "values_floats": [1.0, 2.0]},
            "version 1 maps only distinct strings to or from the indices 0, 1, 2 and so on",
            id="no text at all",
        ),
    ],
)
def test_other_types_are_refused(target: int, attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConversionRefused) as caught:
        convert_version(_model(NUMBERS, TensorProto.FLOAT, 4, **attributes), {ML: target})
    assert [each.reason for each in caught.value.refusals] == [reason]
