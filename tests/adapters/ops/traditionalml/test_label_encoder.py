"""Upgrades of LabelEncoder: the list of classes becomes keys and values, and NaN keys are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.execution import Array, assert_equal, build, opset_of, run

from opshift import ConversionRefused, convert_version

ML = "ai.onnx.ml"
STRINGS = np.array(["b", "a", "unknown", "c", ""], object).reshape(1, 5)
INTEGERS = np.array([[2, 0, 1], [3, -1, 2**40]], np.int64)


def _model(data: Array, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, **attributes)
    is_string = data.dtype == object
    model = build([node], {}, {"y": TensorProto.INT64 if is_string else TensorProto.STRING}, {ML: 1})
    input_type = TensorProto.STRING if is_string else TensorProto.INT64
    model.graph.input.append(helper.make_tensor_value_info("x", input_type, data.shape))
    return model


@pytest.mark.parametrize("target", [2, 3, 4, 5])
@pytest.mark.parametrize(
    ("data", "attributes"),
    [
        pytest.param(STRINGS, {"classes_strings": ["a", "b", "c"]}, id="strings to indices"),
        pytest.param(
            STRINGS,
            {"classes_strings": ["a", "b", "c"], "default_int64": 42},
            id="default for unknown strings",
        ),
        pytest.param(STRINGS, {"classes_strings": ["a", "b", "a", "c"]}, id="repeated class"),
        pytest.param(INTEGERS, {"classes_strings": ["a", "b", "c"]}, id="indices to strings"),
        pytest.param(
            INTEGERS,
            {"classes_strings": ["a", "b", "a"], "default_string": "none"},
            id="default for invalid indices",
        ),
        pytest.param(
            INTEGERS,
            {"classes_strings": ["a"], "default_string": "none", "default_int64": 3},
            id="both defaults",
        ),
    ],
)
def test_preserves_mapping(data: Array, attributes: dict[str, Any], target: int) -> None:
    model = _model(data, **attributes)
    result = convert_version(model, {ML: target})
    assert opset_of(result, ML) == target
    assert_equal(run(result, {"x": data}), run(model, {"x": data}))


@pytest.mark.parametrize(
    ("data", "attributes", "expected"),
    [
        pytest.param(
            STRINGS,
            {"classes_strings": ["a", "b", "a"], "default_int64": 7},
            {"keys_strings": [b"a", b"b"], "values_int64s": [2, 1], "default_int64": 7},
            id="last index of a repeated string",
        ),
        pytest.param(
            INTEGERS,
            {"classes_strings": ["a", "b"]},
            {"keys_int64s": [0, 1], "values_strings": [b"a", b"b"]},
            id="indices as keys without explicit defaults",
        ),
    ],
)
def test_replaces_classes_with_keys_and_values(
    data: Array, attributes: dict[str, Any], expected: dict[str, Any]
) -> None:
    (node,) = convert_version(_model(data, **attributes), {ML: 2}).graph.node
    assert {each.name: helper.get_attribute_value(each) for each in node.attribute} == expected


def test_refuses_missing_classes() -> None:
    with pytest.raises(ConversionRefused, match="classes_strings is missing"):
        convert_version(_model(STRINGS), {ML: 2})


def test_refuses_unknown_input_type() -> None:
    """The input type determines the direction of the mapping."""
    model = _model(STRINGS, classes_strings=["a"])
    model.graph.input[0].type.Clear()
    with pytest.raises(ConversionRefused, match="element type of 'x' is unknown"):
        convert_version(model, {ML: 2})


FLOATS = np.array([1, np.nan, 2, 5], np.float32)


def _float_model(*keys: float) -> onnx.ModelProto:
    node = helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain=ML, keys_floats=keys, values_int64s=[10, 20], default_int64=-7
    )
    return build([node], {"x": FLOATS}, {"y": TensorProto.INT64}, {ML: 2})


@pytest.mark.parametrize("target", [4, 5])
def test_keeps_float_keys(target: int) -> None:
    model = _float_model(1.0, 2.0)
    result = convert_version(model, {ML: target})
    assert result.graph == model.graph
    assert_equal(run(result, {"x": FLOATS}), [np.array([10, -7, 20, -7])])
    assert_equal(run(model, {"x": FLOATS}), [np.array([10, -7, 20, -7])])


def test_refuses_nan_keys() -> None:
    """Version 4 would find the NaN of the input; version 2 does not, in onnxruntime."""
    model = _float_model(1.0, np.nan)
    with pytest.raises(
        ConversionRefused, match="the keys contain NaN; version 4 matches such keys differently"
    ):
        convert_version(model, {ML: 4})
    assert_equal(run(model, {"x": FLOATS}), [np.array([10, -7, -7, -7])])
    model.opset_import[0].version = 4
    assert_equal(run(model, {"x": FLOATS}), [np.array([10, 20, -7, -7])])
