"""Downgrade of products of 8-bit integers to opsets that support only float products."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, assert_equal, build, op_types, run

from opshift import convert_version

RANDOM = np.random.default_rng(0)
TARGETS = [9, 8, 7]

LOW, HIGH = -64, 64
"""Range of int8 weights: x86 processors without VNNI saturate sums of products of larger ones at 16 bits."""


def _integers(*shape: int, low: int = 0, high: int = 256, dtype: type = np.uint8) -> Array:
    return RANDOM.integers(low, high, shape).astype(dtype)


def _model(
    op: str, feeds: dict[str, Array], result: int, opset: int = 10, **attributes: Any
) -> onnx.ModelProto:
    node = helper.make_node(op, list(feeds), ["y"], name="node", **attributes)
    return build([node], feeds, {"y": result}, opset)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("terms", [5, 258, 259, 4112], ids=lambda n: f"{n} terms")
def test_rewrites_matmul_integer(terms: int, target: int) -> None:
    feeds = {"a": _integers(3, terms), "b": _integers(terms, 4)}
    feeds |= {"s": np.array(0, np.uint8), "t": np.array(255, np.uint8)}
    result = convert_and_check(_model("MatMulInteger", feeds, TensorProto.INT32), target, feeds, tolerance=0)
    assert op_types(result).count("MatMul") == (1 if terms <= 258 else 2)


@pytest.mark.parametrize("target", TARGETS)
def test_subtracts_zero_points_per_row_and_column(target: int) -> None:
    feeds = {"a": _integers(3, 5), "b": _integers(5, 4, low=LOW, high=HIGH, dtype=np.int8)}
    feeds |= {"s": np.array([7, 8, 9], np.uint8), "t": np.array([-3, 0, 1, 2], np.int8)}
    rows = feeds["a"].astype(np.int32) - feeds["s"][:, None]
    expected = rows @ (feeds["b"].astype(np.int32) - feeds["t"])
    convert_and_check(
        _model("MatMulInteger", feeds, TensorProto.INT32), target, feeds, [expected], tolerance=0
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [(), (1,)], ids=str)
@pytest.mark.parametrize(
    ("first", "second"),
    [((5,), (5,)), ((5,), (5, 4)), ((3, 5), (5,))],
    ids=["two vectors", "vector and matrix", "matrix and vector"],
)
def test_multiplies_quantized_vectors(
    first: tuple[int, ...], second: tuple[int, ...], size: tuple[int, ...], target: int
) -> None:
    def parameters(name: str, scale: float, zero: int) -> dict[str, Array]:
        return {
            f"{name}_scale": np.full(size, scale, np.float32),
            f"{name}_zero": np.full(size, zero, np.uint8),
        }

    feeds = {"a": _integers(*first), **parameters("a", 0.1, 3), "b": _integers(*second)}
    feeds |= {**parameters("b", 0.2, 5), **parameters("y", 30.0, 7)}
    result = convert_and_check(_model("QLinearMatMul", feeds, TensorProto.UINT8), target, feeds, tolerance=0)
    assert "QLinearMatMul" not in op_types(result)


@pytest.mark.parametrize("op", ["MatMulInteger", "QLinearMatMul"])
def test_multiplies_vectors_with_parameters_of_unknown_size(op: str) -> None:
    feeds = {"a": _integers(5), "s": np.array([3], np.uint8), "b": _integers(5), "t": np.array([4], np.uint8)}
    if op == "MatMulInteger":
        feeds = {name: feeds[name] for name in "abst"}
    else:
        scales = {f"{name}_scale": np.array([scale], np.float32) for name, scale in (("a", 0.5), ("b", 0.25))}
        feeds = {
            "a": feeds["a"], "a_scale": scales["a_scale"], "s": feeds["s"],
            "b": feeds["b"], "b_scale": scales["b_scale"], "t": feeds["t"],
            "y_scale": np.array([128], np.float32), "u": np.array([7], np.uint8),
        }  # fmt: skip
    kind = TensorProto.INT32 if op == "MatMulInteger" else TensorProto.UINT8
    model = _model(op, feeds, kind)
    for each in model.graph.input:
        if each.name not in "ab":
            each.type.tensor_type.shape.dim[0].dim_param = "n"
    assert_equal(run(convert_version(model, 9), feeds), run(model, feeds))


def test_refuses_inexact_sums() -> None:
    feeds = {"a": _integers(1, 4113), "b": _integers(4113, 1)}
    refused = refusal_of(_model("MatMulInteger", feeds, TensorProto.INT32), 9)
    assert refused.reason == "each element is a sum of 4113 products, which float may not represent exactly"


def test_refuses_sums_of_unknown_length() -> None:
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"], name="node")
    feeds = {"a": _integers(2, 3), "b": _integers(3, 2)}
    refused = refusal_of(build([node], feeds, {"y": TensorProto.INT32}, 10, shapes=False), 9)
    assert refused.reason == "the number of summed products is unknown, so their sum in float may be inexact"


def _conv_integer_model(feeds: dict[str, Array]) -> onnx.ModelProto:
    return _model("ConvInteger", feeds, TensorProto.INT32, pads=[1, 0, 1, 2], strides=[2, 1])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("channels", [2, 32], ids=["short sums", "long sums"])
def test_rewrites_conv_integer(channels: int, target: int) -> None:
    feeds = {"x": _integers(2, channels, 6, 7), "w": _integers(3, channels, 3, 3)}
    feeds |= {"s": np.array(100, np.uint8), "t": np.array(7, np.uint8)}
    convert_and_check(_conv_integer_model(feeds), target, feeds, tolerance=0)


def test_subtracts_zero_points_per_filter() -> None:
    data = {"x": _integers(2, 2, 6, 7)}
    kernel, zeros = _integers(3, 2, 3, 3), np.array([1, 2, 3], np.uint8)
    outputs_per_filter = []
    for index in range(3):
        feeds = {
            **data,
            "w": kernel[index : index + 1],
            "s": np.array(100, np.uint8),
            "t": np.asarray(zeros[index]),
        }
        outputs_per_filter += run(_conv_integer_model(feeds), feeds)
    feeds = {**data, "w": kernel, "s": np.array(100, np.uint8), "t": zeros}
    convert_and_check(
        _conv_integer_model(feeds), 9, feeds, [np.concatenate(outputs_per_filter, axis=1)], tolerance=0
    )


def _quantized_feeds(dtype: type, scale_dtype: type, per_channel: bool) -> dict[str, Array]:
    low, high = (-128, 128) if dtype is np.int8 else (0, 256)
    feeds = {"a": _integers(3, 5, low=low, high=high, dtype=dtype), "as": np.array(0.02, scale_dtype)}
    feeds |= {"az": np.array(5, dtype), "b": _integers(5, 4, low=low, high=high, dtype=dtype)}
    feeds |= {"bs": np.array([0.01, 0.02, 0.03, 0.04] if per_channel else 0.01, scale_dtype)}
    feeds |= {"bz": np.array([1, 2, 3, 4] if per_channel else 3, dtype)}
    return feeds | {"ys": np.array(0.05, scale_dtype), "yz": np.array(9, dtype)}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_rewrites_qlinear_matmul(dtype: type, target: int) -> None:
    feeds = _quantized_feeds(dtype, np.float32, per_channel=dtype is np.int8)
    result = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    convert_and_check(_model("QLinearMatMul", feeds, result), target, feeds, tolerance=0)


@pytest.mark.parametrize("target", [20, 10, 9])
def test_casts_float16_scales(target: int) -> None:
    feeds = _quantized_feeds(np.uint8, np.float16, per_channel=False)
    convert_and_check(_model("QLinearMatMul", feeds, TensorProto.UINT8, 21), target, feeds, tolerance=0)


def test_casts_bfloat16_scales_down_to_opset_13() -> None:
    feeds = _quantized_feeds(np.uint8, ml_dtypes.bfloat16, per_channel=False)
    model = _model("QLinearMatMul", feeds, TensorProto.UINT8, 21)
    assert op_types(convert_version(model, 13)) == ["Cast", "Cast", "Cast", "QLinearMatMul"]
    assert refusal_of(model, 12).reason == "the operator has no equivalent for bfloat16 below opset 13"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("per_channel", [False, True], ids=["single scale", "scale per filter"])
def test_rewrites_qlinear_conv(per_channel: bool, bias: bool, target: int) -> None:
    feeds = {"x": _integers(1, 2, 6, 7), "xs": np.array(0.02, np.float32), "xz": np.array(100, np.uint8)}
    feeds |= {"w": _integers(3, 2, 3, 3, low=LOW, high=HIGH, dtype=np.int8)}
    feeds |= {"ws": np.array([0.01, 0.02, 0.03] if per_channel else 0.01, np.float32)}
    feeds |= {"wz": np.array([0, 0, 0] if per_channel else 0, np.int8)}
    feeds |= {"ys": np.array(0.05, np.float32), "yz": np.array(128, np.uint8)}
    if bias:
        feeds |= {"b": np.array([1000, -2000, 30], np.int32)}
    convert_and_check(
        _model("QLinearConv", feeds, TensorProto.UINT8, pads=[1, 1, 1, 1]), target, feeds, tolerance=0
    )
