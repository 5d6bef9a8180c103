"""IsInf, IsNaN and Sign below their first opset."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.conversion import convert_and_check
from support.execution import Array, one_node_model

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS = (np.float16, np.float32, np.float64)
SPECIAL_VALUES = [math.inf, -math.inf, math.nan, 0.0, -0.0, 1.5, -2.5, 6e4, -6e4, 6e-8]


@pytest.mark.parametrize("target", [7, 9])
@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({}, id="both signs"),
        pytest.param({"detect_negative": 0}, id="positive only"),
        pytest.param({"detect_positive": 0}, id="negative only"),
        pytest.param({"detect_positive": 0, "detect_negative": 0}, id="neither"),
    ],
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_expands_is_inf(dtype: type, attributes: dict[str, int], target: int) -> None:
    data: Array = np.array([*SPECIAL_VALUES, np.finfo(dtype).max, np.finfo(dtype).min], dtype)
    expected = (np.isposinf(data) & bool(attributes.get("detect_positive", 1))) | (
        np.isneginf(data) & bool(attributes.get("detect_negative", 1))
    )
    model = one_node_model("IsInf", 20, np.bool_, data, **attributes)
    convert_and_check(model, target, {"x0": data}, [expected])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("dtype", FLOATS)
def test_expands_is_nan(dtype: type, target: int) -> None:
    data: Array = np.array([*SPECIAL_VALUES, np.finfo(dtype).max], dtype)
    convert_and_check(one_node_model("IsNaN", 9, np.bool_, data), target, {"x0": data}, [np.isnan(data)])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_expands_sign(dtype: type, target: int) -> None:
    low = -3 if dtype in FLOATS or np.iinfo(dtype).min else 0
    floats, integers = [-math.inf, math.inf, math.nan, 6e-8, -0.0], np.iinfo
    extremes = floats if dtype in FLOATS else [integers(dtype).min, integers(dtype).max]
    data: Array = np.array([low, 0, 1, 5, *extremes], dtype)
    convert_and_check(one_node_model("Sign", 9, dtype, data), target, {"x0": data}, [np.sign(data)])
