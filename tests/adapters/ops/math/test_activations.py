"""Expansion of activations below the opset that introduced them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, assert_equal, build, op_types, run

from opshift import convert_version

SAMPLES = np.array(
    [-np.inf, -1e4, -3.5, -1.0, -0.5, -1e-4, 0.0, 1e-4, 0.5, 1.0, 3.5, 1e4, np.inf], np.float32
)
FINITE = SAMPLES[1:-1]
MODERATE = SAMPLES[2:-2]


def _model(op: str, data: Array, opset: int, **attributes: Any) -> onnx.ModelProto:
    inputs = ["x", "x"] if op == "SwiGLU" else ["x"]
    element_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    return build(
        [helper.make_node(op, inputs, ["y"], name="node", **attributes)],
        {"x": data},
        {"y": element_type},
        opset,
    )


CASES = [
    pytest.param("Celu", 12, {}, ["Elu"], id="Celu with default alpha"),
    pytest.param("Celu", 12, {"alpha": 2.5}, ["Div", "Elu", "Mul"], id="Celu with alpha"),
    pytest.param("Celu", 12, {"alpha": -1.5}, None, id="Celu with negative alpha"),
    pytest.param("HardSwish", 14, {}, ["HardSigmoid", "Mul"], id="HardSwish"),
    pytest.param("Mish", 18, {}, ["Softplus", "Tanh", "Mul"], id="Mish"),
    pytest.param("Swish", 24, {}, ["Sigmoid", "Mul"], id="Swish with default alpha"),
    pytest.param("Swish", 24, {"alpha": -1.5}, ["Mul", "Sigmoid", "Mul"], id="Swish with alpha"),
    pytest.param("SwiGLU", 28, {}, ["Sigmoid", "Mul", "Mul"], id="SwiGLU"),
    pytest.param("SwiGLU", 28, {"alpha": 0.5}, ["Mul", "Sigmoid", "Mul", "Mul"], id="SwiGLU with alpha"),
    pytest.param("Gelu", 20, {"approximate": "tanh"}, None, id="Gelu with tanh approximation"),
    pytest.param("ThresholdedRelu", 10, {}, None, id="ThresholdedRelu with default alpha"),
    pytest.param("ThresholdedRelu", 10, {"alpha": -0.75}, None, id="ThresholdedRelu with negative alpha"),
    pytest.param("Shrink", 9, {"lambd": 0.7}, None, id="hard Shrink"),
    pytest.param("Shrink", 9, {"lambd": 0.5, "bias": 0.5}, None, id="soft Shrink"),
]


@pytest.mark.parametrize(("op", "since", "attributes", "expected_nodes"), CASES)
def test_preserves_outputs(
    op: str, since: int, attributes: dict[str, Any], expected_nodes: list[str] | None
) -> None:
    model = _model(op, MODERATE, since, **attributes)
    for target in sorted({7, 8, since - 1}):
        result = convert_and_check(model, target, {"x": MODERATE})
        assert op not in op_types(result)
    if expected_nodes is not None:
        assert op_types(convert_version(model, since - 1)) == expected_nodes


@pytest.mark.parametrize(
    ("op", "since", "attributes"),
    [
        pytest.param("ThresholdedRelu", 10, {"alpha": -0.75}, id="ThresholdedRelu"),
        pytest.param("Celu", 12, {}, id="Celu"),
        pytest.param("Shrink", 9, {"bias": 0.5}, id="Shrink"),
    ],
)
def test_preserves_infinities(op: str, since: int, attributes: dict[str, Any]) -> None:
    convert_and_check(_model(op, SAMPLES, since, **attributes), since - 1, {"x": SAMPLES})


@pytest.mark.parametrize(("op", "since"), [("HardSwish", 14), ("Mish", 18)])
def test_needs_no_shapes_below_opset_7(op: str, since: int) -> None:
    """The gate has the same shape as the input that it scales, so nothing is broadcast."""
    node = helper.make_node(op, ["x"], ["y"])
    model = build([node], {"x": FINITE}, ["y"], since, shapes=False)
    assert op_types(convert_version(model, 6)) == op_types(convert_version(model, 7))


def test_expands_gelu_with_erf() -> None:
    """The expansion emits Erf, which exists since opset 9."""
    for target in (9, 19):
        convert_and_check(_model("Gelu", FINITE, 20), target, {"x": FINITE})


@pytest.mark.parametrize(
    ("op", "since", "dtype", "tolerance"),
    [("Gelu", 20, np.float16, 2e-3), ("Swish", 24, np.float16, 2e-3), ("Swish", 24, np.float64, 1e-9)],
    ids=["Gelu in float16", "Swish in float16", "Swish in double"],
)
def test_preserves_half_and_double_precision(
    op: str, since: int, dtype: type[np.generic], tolerance: float
) -> None:
    data = MODERATE.astype(dtype)
    expected = [data / (1 + np.exp(-data))] if dtype is np.float64 else None
    convert_and_check(_model(op, data, since), since - 1, {"x": data}, expected, tolerance=tolerance)


def test_computes_float16_of_opset_28_in_float() -> None:
    data = MODERATE.astype(np.float16)
    for target in (12, 11):
        convert_and_check(_model("Celu", data, 28, alpha=2.0), target, {"x": data}, tolerance=2e-3)


def test_refuses_celu_with_zero_alpha() -> None:
    refused = refusal_of(_model("Celu", FINITE, 12, alpha=0.0), 11)
    assert refused.reason == "alpha is 0.0, and the result of Celu is undefined"
    assert refused.remedy == "use an alpha other than 0"


@pytest.mark.parametrize(("op", "since"), [("ThresholdedRelu", 10), ("Shrink", 9)])
@pytest.mark.parametrize("target", [8, 9])
def test_maps_nan_to_zero(op: str, since: int, target: int) -> None:
    data = np.array([np.nan, 2.0, -np.inf], np.float32)
    result = run(convert_version(_model(op, data, since), target), {"x": data})
    assert_equal(result, [np.array([0.0, 2.0, -np.inf if op == "Shrink" else 0.0], np.float32)])


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8], ids=lambda dtype: dtype.__name__)
def test_shrinks_integers(dtype: type[np.generic]) -> None:
    data = np.array([0, 1, 2, 3, 100] if dtype is np.uint8 else [-100, -3, -2, 0, 1, 3], dtype)
    convert_and_check(_model("Shrink", data, 9, lambd=1.5, bias=1.0), 8, {"x": data})
