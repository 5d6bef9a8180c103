"""LabelEncoder: a list of classes becomes keys and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, assert_equal, build, opset_of, run

from opshift import ConversionRefused, convert_version

ML = "ai.onnx.ml"
TEXTS = np.array(["b", "a", "unknown", "c", ""], object).reshape(1, 5)
NUMBERS = np.array([[2, 0, 1], [3, -1, 2**40]], np.int64)


def _model(data: Array, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, **attributes)
    is_text = data.dtype == object
    model = build([node], {}, {"y": TensorProto.INT64 if is_text else TensorProto.STRING}, {ML: 1})
    kind = TensorProto.STRING if is_text else TensorProto.INT64
    model.graph.input.append(helper.make_tensor_value_info("x", kind, data.shape))
    return model


@pytest.mark.parametrize("target", [2, 3, 4, 5])
@pytest.mark.parametrize(
    ("data", "attributes"),
    [
        pytest.param(TEXTS, {"classes_strings": ["a", "b", "c"]}, id="text to its place"),
        pytest.param(
            TEXTS,
            {"classes_strings": ["a", "b", "c"], "default_int64": 42},
            id="a number for text that is not listed",
        ),
        pytest.param(TEXTS, {"classes_strings": ["a", "b", "a", "c"]}, id="a class that is listed twice"),
        pytest.param(NUMBERS, {"classes_strings": ["a", "b", "c"]}, id="a place to its text"),
        pytest.param(
            NUMBERS,
            {"classes_strings": ["a", "b", "a"], "default_string": "none"},
            id="text for numbers that are no place",
        ),
        pytest.param(
            NUMBERS,
            {"classes_strings": ["a"], "default_string": "none", "default_int64": 3},
            id="both defaults stated",
        ),
    ],
)
def test_places_become_keys_or_values(data: Array, attributes: dict[str, Any], target: int) -> None:
    """Every element is mapped as before."""
    model = _model(data, **attributes)
    moved = convert_version(model, {ML: target})
    assert opset_of(moved, ML) == target
    assert_equal(run(moved, {"x": data}), run(model, {"x": data}))


@pytest.mark.parametrize(
    ("data", "attributes", "lists"),
    [
        pytest.param(
            TEXTS,
            {"classes_strings": ["a", "b", "a"], "default_int64": 7},
            {"keys_strings": [b"a", b"b"], "values_int64s": [2, 1], "default_int64": 7},
            id="text is the key, and a repeated one has its last place",
        ),
        pytest.param(
            NUMBERS,
            {"classes_strings": ["a", "b"]},
            {"keys_int64s": [0, 1], "values_strings": [b"a", b"b"]},
            id="the place is the key, and the defaults of both versions are the same",
        ),
    ],
)
def test_lists(data: Array, attributes: dict[str, Any], lists: dict[str, Any]) -> None:
    """Only the list of classes is replaced."""
    (node,) = convert_version(_model(data, **attributes), {ML: 2}).graph.node
    assert {each.name: helper.get_attribute_value(each) for each in node.attribute} == lists


def test_no_classes() -> None:
    """Without classes there is nothing to write out."""
    with pytest.raises(ConversionRefused, match="classes_strings is missing"):
        convert_version(_model(TEXTS), {ML: 2})


def test_unknown_type() -> None:
    """The input's type tells the direction."""
    model = _model(TEXTS, classes_strings=["a"])
    model.graph.input[0].type.Clear()
    with pytest.raises(ConversionRefused, match="element type of 'x' is unknown"):
        convert_version(model, {ML: 2})
