"""Sanity checks of outputs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from opshift.analysis.verification.execution import has_declared_shapes, has_finite_values

NOT_FINITE = np.array([np.nan, np.inf], np.float32)


def declared(*dims: Any) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info("y", TensorProto.FLOAT, list(dims))


@pytest.mark.parametrize(
    ("value", "output", "expected"),
    [
        pytest.param(np.ones((2, 3)), declared(2, 3), True, id="declared sizes"),
        pytest.param(np.ones((2, 3)), declared("N", None), True, id="unknown sizes"),
        pytest.param(np.ones((2, 3)), helper.make_tensor_value_info("y", 1, None), True, id="unknown shape"),
        pytest.param([np.ones(2)], declared(3), True, id="sequence"),
        pytest.param(np.ones((2, 3)), declared(2, 4), False, id="different size"),
        pytest.param(np.ones((2, 3)), declared("N"), False, id="different rank"),
    ],
)
def test_compares_outputs_with_declared_sizes(
    value: Any, output: onnx.ValueInfoProto, expected: bool
) -> None:
    assert has_declared_shapes([[value]], [output]) is expected


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        pytest.param([[NOT_FINITE], [np.ones(1)]], True, id="finite number in one sample"),
        pytest.param([[NOT_FINITE, np.array(3)]], True, id="finite number in one output"),
        pytest.param([[np.array(["a"], object)]], True, id="string"),
        pytest.param([[np.ones(1, ml_dtypes.bfloat16)]], True, id="bfloat16 number"),
        pytest.param([[[NOT_FINITE]]], True, id="nonempty sequence"),
        pytest.param([[NOT_FINITE]], False, id="no finite number"),
        pytest.param([[np.zeros(0)], [np.zeros((0, 2), int)]], False, id="no elements"),
        pytest.param([[[], {}, None]], False, id="empty containers"),
    ],
)
def test_requires_comparable_elements(samples: list[list[Any]], expected: bool) -> None:
    assert has_finite_values(samples) is expected
