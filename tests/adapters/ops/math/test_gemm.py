"""Downgrade of Gemm: a missing bias, and a bias that is broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types
from support.old_operators import assert_round_trip

RANDOM = np.random.default_rng(0)


def _model(
    opset: int,
    bias: tuple[int, ...] | None,
    dtype: Any = np.float32,
    *,
    shapes: bool = True,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds: dict[str, Array] = {
        "a": RANDOM.random((2, 3)).astype(dtype),
        "b": RANDOM.random((3, 4)).astype(dtype),
    }
    if bias is not None:
        feeds["c"] = RANDOM.random(bias).astype(dtype)
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node("Gemm", list(feeds), ["y"], name="node", **attributes)
    return build([node], feeds, {"y": element_type}, opset, shapes=shapes), feeds


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float", "double"])
@pytest.mark.parametrize("target", [10, 8, 7])
def test_adds_zero_bias(dtype: Any, target: int) -> None:
    model, feeds = _model(11, None, dtype, alpha=0.5)
    assert len(convert_and_check(model, target, feeds).graph.node[0].input) == 3


def test_keeps_bias() -> None:
    model, feeds = _model(11, (4,))
    assert op_types(convert_and_check(model, 7, feeds)) == ["Gemm"]


BIAS_CASES = [
    pytest.param((2, 4), ["Gemm"], id="product shape"),
    pytest.param((4,), ["Gemm"], id="row"),
    pytest.param((), ["Gemm"], id="scalar"),
    pytest.param((1, 4), ["Reshape", "Gemm"], id="row of rank 2"),
    pytest.param((1, 1), ["Reshape", "Gemm"], id="single element"),
    pytest.param((2, 1), ["Gemm", "Mul", "Reshape", "Add"], id="column"),
]


@pytest.mark.parametrize(("bias", "expected_nodes"), BIAS_CASES)
@pytest.mark.parametrize("target", [6, 5])
def test_broadcasts_bias(bias: tuple[int, ...], expected_nodes: Sequence[str], target: int) -> None:
    model, feeds = _model(7, bias, beta=0.5, alpha=2.0)
    assert op_types(assert_round_trip(model, target, feeds)) == expected_nodes


def test_refuses_bias_of_unknown_shape() -> None:
    model, _ = _model(7, (2, 4), shapes=False)
    reason = "the shape of 'c' is unknown, and the attribute `broadcast` depends on it"
    assert refusal_of(model, 6).reason == reason


def test_refuses_integers_below_opset_9() -> None:
    model, _ = _model(11, (2, 4), np.int32)
    assert refusal_of(model, 8).reason == "'a' is tensor(int32), which ai.onnx.Gemm:7 does not support"
