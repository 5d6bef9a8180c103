"""Products of 8-bit integers on their way down to opsets that have them in float only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, build, op_types, run

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
RANDOM = np.random.default_rng(0)
TARGETS = [9, 8, 7]


def _bytes(*shape: int, low: int = 0, high: int = 256, kind: type = np.uint8) -> Array:
    return RANDOM.integers(low, high, shape).astype(kind)


def _model(op: str, feeds: dict[str, Array], result: int, opset: int = 10, **more: Any) -> onnx.ModelProto:
    node = helper.make_node(op, list(feeds), ["y"], name="node", **more)
    return build([node], feeds, {"y": result}, opset)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("terms", [5, 258, 259, 4112], ids=lambda n: f"{n} terms")
def test_matrices_of_integers(terms: int, target: int, converted: Converted) -> None:
    feeds = {"a": _bytes(3, terms), "b": _bytes(terms, 4)}
    feeds |= {"s": np.array(0, np.uint8), "t": np.array(255, np.uint8)}
    result = converted(_model("MatMulInteger", feeds, TensorProto.INT32), target, feeds, tolerance=0)
    assert op_types(result).count("MatMul") == (1 if terms <= 258 else 2)


@pytest.mark.parametrize("target", TARGETS)
def test_zero_points_of_rows_and_columns(target: int, converted: Converted) -> None:
    feeds = {"a": _bytes(3, 5), "b": _bytes(5, 4, low=-128, high=128, kind=np.int8)}
    feeds |= {"s": np.array([7, 8, 9], np.uint8), "t": np.array([-3, 0, 1, 2], np.int8)}
    rows = feeds["a"].astype(np.int32) - feeds["s"][:, None]
    expected = rows @ (feeds["b"].astype(np.int32) - feeds["t"])
    converted(_model("MatMulInteger", feeds, TensorProto.INT32), target, feeds, [expected], tolerance=0)


def test_longer_sums_are_refused(refusal: Refusing) -> None:
    feeds = {"a": _bytes(1, 4113), "b": _bytes(4113, 1)}
    found = refusal(_model("MatMulInteger", feeds, TensorProto.INT32), 9)
    assert found.reason == "each element is a sum of 4113 products, which float may not represent exactly"


def test_sums_of_unknown_length_are_refused(refusal: Refusing) -> None:
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"], name="node")
    feeds = {"a": _bytes(2, 3), "b": _bytes(3, 2)}
    found = refusal(build([node], feeds, {"y": TensorProto.INT32}, 10, shapes=False), 9)
    assert found.reason == "the number of summed products is unknown, so their sum in float may be inexact"


def _convolution(feeds: dict[str, Array]) -> onnx.ModelProto:
    return _model("ConvInteger", feeds, TensorProto.INT32, pads=[1, 0, 1, 2], strides=[2, 1])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("channels", [2, 32], ids=["short sums", "long sums"])
def test_convolutions_of_integers(channels: int, target: int, converted: Converted) -> None:
    feeds = {"x": _bytes(2, channels, 6, 7), "w": _bytes(3, channels, 3, 3)}
    feeds |= {"s": np.array(100, np.uint8), "t": np.array(7, np.uint8)}
    converted(_convolution(feeds), target, feeds, tolerance=0)


def test_zero_points_of_filters(converted: Converted) -> None:
    data = {"x": _bytes(2, 2, 6, 7)}
    kernel, zeros = _bytes(3, 2, 3, 3), np.array([1, 2, 3], np.uint8)
    alone = []
    for place in range(3):
        feeds = {
            **data,
            "w": kernel[place : place + 1],
            "s": np.array(100, np.uint8),
            "t": np.asarray(zeros[place]),
        }
        alone += run(_convolution(feeds), feeds)
    feeds = {**data, "w": kernel, "s": np.array(100, np.uint8), "t": zeros}
    converted(_convolution(feeds), 9, feeds, [np.concatenate(alone, axis=1)], tolerance=0)


def _quantized(kind: type, scale: type, per_channel: bool) -> dict[str, Array]:
    low, high = (-128, 128) if kind is np.int8 else (0, 256)
    feeds = {"a": _bytes(3, 5, low=low, high=high, kind=kind), "as": np.array(0.02, scale)}
    feeds |= {"az": np.array(5, kind), "b": _bytes(5, 4, low=low, high=high, kind=kind)}
    feeds |= {"bs": np.array([0.01, 0.02, 0.03, 0.04] if per_channel else 0.01, scale)}
    feeds |= {"bz": np.array([1, 2, 3, 4] if per_channel else 3, kind)}
    return feeds | {"ys": np.array(0.05, scale), "yz": np.array(9, kind)}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_matrices_are_requantized(kind: type, target: int, converted: Converted) -> None:
    feeds = _quantized(kind, np.float32, per_channel=kind is np.int8)
    result = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    converted(_model("QLinearMatMul", feeds, result), target, feeds, tolerance=0)


@pytest.mark.parametrize("target", [20, 10, 9])
def test_scales_of_half_precision_are_cast(target: int, converted: Converted) -> None:
    feeds = _quantized(np.uint8, np.float16, per_channel=False)
    converted(_model("QLinearMatMul", feeds, TensorProto.UINT8, 21), target, feeds, tolerance=0)


def test_scales_of_bfloat16_go_as_far_as_a_cast_takes_them(refusal: Refusing) -> None:
    feeds = _quantized(np.uint8, ml_dtypes.bfloat16, per_channel=False)
    model = _model("QLinearMatMul", feeds, TensorProto.UINT8, 21)
    assert op_types(convert_version(model, 13)) == ["Cast", "Cast", "Cast", "QLinearMatMul"]
    assert refusal(model, 12).reason == "'as' is tensor(bfloat16), which ai.onnx.Cast:9 does not support"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "a bias"])
@pytest.mark.parametrize("per_channel", [False, True], ids=["one scale", "a scale for each filter"])
def test_convolutions_are_requantized(
    per_channel: bool, bias: bool, target: int, converted: Converted
) -> None:
    feeds = {"x": _bytes(1, 2, 6, 7), "xs": np.array(0.02, np.float32), "xz": np.array(100, np.uint8)}
    feeds |= {"w": _bytes(3, 2, 3, 3, low=-128, high=128, kind=np.int8)}
    feeds |= {"ws": np.array([0.01, 0.02, 0.03] if per_channel else 0.01, np.float32)}
    feeds |= {"wz": np.array([0, 0, 0] if per_channel else 0, np.int8)}
    feeds |= {"ys": np.array(0.05, np.float32), "yz": np.array(128, np.uint8)}
    if bias:
        feeds |= {"b": np.array([1000, -2000, 30], np.int32)}
    converted(_model("QLinearConv", feeds, TensorProto.UINT8, pads=[1, 1, 1, 1]), target, feeds, tolerance=0)
