"""Outputs from which something can be told."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from opshift.converter.verification.telling import fits, has_numbers

NAN = np.array([np.nan, np.inf], np.float32)


def declared(*dims: Any) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info("y", TensorProto.FLOAT, list(dims))


@pytest.mark.parametrize(
    ("value", "output", "expected"),
    [
        pytest.param(np.ones((2, 3)), declared(2, 3), True, id="as stated"),
        pytest.param(np.ones((2, 3)), declared("N", None), True, id="nothing stated of sizes"),
        pytest.param(np.ones((2, 3)), helper.make_tensor_value_info("y", 1, None), True, id="nothing stated"),
        pytest.param([np.ones(2)], declared(3), True, id="no tensor"),
        pytest.param(np.ones((2, 3)), declared(2, 4), False, id="another size"),
        pytest.param(np.ones((2, 3)), declared("N"), False, id="another rank"),
    ],
)
def test_outputs_that_have_the_stated_sizes(value: Any, output: onnx.ValueInfoProto, expected: bool) -> None:
    assert fits([[value]], [output]) is expected


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        pytest.param([[NAN], [np.ones(1)]], True, id="a number in one sample"),
        pytest.param([[NAN, np.array(3)]], True, id="a number in one output"),
        pytest.param([[np.array(["a"], object)]], True, id="text"),
        pytest.param([[np.ones(1, ml_dtypes.bfloat16)]], True, id="a number of few bits"),
        pytest.param([[[NAN]]], True, id="a sequence of something"),
        pytest.param([[NAN]], False, id="nothing finite"),
        pytest.param([[np.zeros(0)], [np.zeros((0, 2), int)]], False, id="no elements"),
        pytest.param([[[], {}, None]], False, id="nothing at all"),
    ],
)
def test_outputs_that_have_numbers(samples: list[list[Any]], expected: bool) -> None:
    assert has_numbers(samples) is expected
