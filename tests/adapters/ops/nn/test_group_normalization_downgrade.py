"""Downgrade of GroupNormalization: each group is normalized as an instance with one spatial dimension."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, assert_equal, build, op_types, run, run_reference

from opshift import convert_version

RANDOM = np.random.default_rng(0)
DATA = RANDOM.standard_normal((2, 6, 3, 4)).astype(np.float32)
SCALE, BIAS = RANDOM.standard_normal((2, 6)).astype(np.float32)
TARGETS = [20, 18, 17, 12, 9, 7]


def _model(data: Array, scale: Array, bias: Array, opset: int, **overrides: Any) -> onnx.ModelProto:
    attributes = {"num_groups": 3, **overrides}
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], name="node", **attributes)
    element_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    return build([node], {"x": data, "s": scale, "b": bias}, {"y": element_type}, opset)


def _expected(data: Array, scale: Array, bias: Array, epsilon: float) -> Array:
    groups = data.reshape(2, 3, -1).astype(np.float64)
    normalized = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + epsilon)
    column = (-1, *[1] * (data.ndim - 2))
    return np.asarray(
        normalized.reshape(data.shape) * scale.reshape(column) + bias.reshape(column), data.dtype
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("epsilon", [None, 0.1], ids=["default epsilon", "explicit epsilon"])
@pytest.mark.parametrize("shape", [(2, 6, 3, 4), (2, 6, 12), (2, 6)], ids=["2-D", "1-D", "0-D"])
def test_applies_scale_per_channel(shape: tuple[int, ...], epsilon: float | None, target: int) -> None:
    data = DATA.reshape(-1)[: np.prod(shape)].reshape(shape)
    attributes = {"epsilon": epsilon} if epsilon else {}
    feeds = {"x": data, "s": SCALE, "b": BIAS}
    expected = _expected(data, SCALE, BIAS, epsilon or 1e-5)
    convert_and_check(_model(data, SCALE, BIAS, 21, **attributes), target, feeds, [expected], tolerance=1e-4)


@pytest.mark.parametrize("target", [17, 12, 9, 7])
@pytest.mark.parametrize("shape_known", [True, False], ids=["known shape", "unknown shape"])
def test_applies_scale_per_group(shape_known: bool, target: int) -> None:
    scale, bias = SCALE[:3], BIAS[:3]
    model = _model(DATA, scale, bias, 18)
    if not shape_known:
        model.graph.input[0].type.tensor_type.ClearField("shape")
    actual = run(convert_version(model, target), {"x": DATA, "s": scale, "b": bias})
    assert_equal(actual, [_expected(DATA, np.repeat(scale, 2), np.repeat(bias, 2), 1e-5)], 1e-4)


@pytest.mark.parametrize("target", [21, 17, 7])
def test_refuses_a_scale_per_channel_where_groups_have_one(target: int) -> None:
    refusal = refusal_of(_model(DATA, SCALE, BIAS, 18), target)
    assert refusal.reason == "'s' has the size 6, but num_groups is 3"


@pytest.mark.parametrize("target", [17, 7])
@pytest.mark.parametrize(("rank_known", "last"), [(True, "Add"), (False, "Reshape")])
def test_reshapes_the_result_only_if_the_rank_is_unknown(rank_known: bool, last: str, target: int) -> None:
    model = _model(DATA, SCALE, BIAS, 21)
    if not rank_known:
        model.graph.input[0].type.tensor_type.ClearField("shape")
    converted = convert_version(model, target)
    assert op_types(converted)[-1] == last
    actual = run(converted, {"x": DATA, "s": SCALE, "b": BIAS})
    assert_equal(actual, [_expected(DATA, SCALE, BIAS, 1e-5)], 1e-4)


@pytest.mark.parametrize("stash_type", [TensorProto.FLOAT, TensorProto.FLOAT16], ids=["float", "float16"])
def test_normalizes_float16_in_the_stash_type(stash_type: int) -> None:
    data, scale, bias = (each.astype(np.float16) for each in (DATA, SCALE, BIAS))
    model = convert_version(_model(data, scale, bias, 21, stash_type=stash_type), 17)
    assert ("Cast" in [node.op_type for node in model.graph.node]) == (stash_type == TensorProto.FLOAT)
    actual = run(model, {"x": data, "s": scale, "b": bias})
    assert_equal(actual, [_expected(data, scale, bias, 1e-5)], 2e-2)


@pytest.mark.parametrize("stash_type", [TensorProto.FLOAT, TensorProto.BFLOAT16], ids=["float", "bfloat16"])
@pytest.mark.parametrize("target", [20, 17])
def test_normalizes_bfloat16_in_float(target: int, stash_type: int) -> None:
    """InstanceNormalization supports bfloat16 since opset 22."""
    data, scale, bias = (each.astype(ml_dtypes.bfloat16) for each in (DATA, SCALE, BIAS))
    model = convert_version(_model(data, scale, bias, 21, stash_type=stash_type), target)
    (actual,) = run_reference(model, {"x": data, "s": scale, "b": bias})
    as_float = [each.astype(np.float32) for each in (data, scale, bias)]
    expected = _expected(as_float[0], as_float[1], as_float[2], 1e-5)
    np.testing.assert_allclose(actual.astype(np.float32), expected, 0.05, 0.05)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
