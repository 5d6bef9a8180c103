"""Downgrade of BatchNormalization and InstanceNormalization: types, training and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check
from support.execution import Array, build, op_types, run
from support.old_operators import assert_round_trip

RANDOM = np.random.default_rng(0)
CHANNELS = ("scale", "bias", "mean", "variance")


def _feeds(shape: Sequence[int], dtypes: Sequence[Any] = (np.float32,) * 3) -> dict[str, Array]:
    data_dtype, scale_dtype, statistics_dtype = dtypes
    feeds: dict[str, Array] = {"x": RANDOM.standard_normal(shape).astype(data_dtype)}
    for name, dtype in zip(
        CHANNELS, (scale_dtype, scale_dtype, statistics_dtype, statistics_dtype), strict=True
    ):
        feeds[name] = (RANDOM.random(shape[1] if len(shape) > 1 else 1) + 0.5).astype(dtype)
    return feeds


def _model(
    opset: int, feeds: dict[str, Array], outputs: Sequence[str] = ("y",), **attributes: Any
) -> onnx.ModelProto:
    node = helper.make_node("BatchNormalization", list(feeds), outputs, name="node", **attributes)
    element_types = [helper.np_dtype_to_tensor_dtype(feeds[name].dtype) for name in ("x", "mean", "mean")]
    return build([node], feeds, dict(zip(outputs, element_types, strict=False)), opset, shapes=False)


def _expected(feeds: dict[str, Array], training: bool, momentum: float = 0.9) -> list[Array]:
    """Compute the definition in double."""
    data = feeds["x"].astype(np.float64)
    scale, bias, mean, variance = (feeds[name].astype(np.float64) for name in CHANNELS)
    axes = (0, *range(2, data.ndim))
    column = (-1, *[1] * (data.ndim - 2))
    current = (data.mean(axes), data.var(axes)) if training else (mean, variance)
    deviation = np.sqrt(current[1] + 1e-5)
    normalized = (data - current[0].reshape(column)) / deviation.reshape(column)
    result = [(normalized * scale.reshape(column) + bias.reshape(column)).astype(feeds["x"].dtype)]
    for old, new in zip((mean, variance), current, strict=True):
        result.append((old * momentum + new * (1 - momentum)).astype(feeds["mean"].dtype))
    return result


SHAPES = [(2, 3), (2, 3, 4), (2, 3, 4, 5)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("target", [14, 13, 8, 7])
def test_preserves_inference(shape: Sequence[int], target: int) -> None:
    feeds = _feeds(shape)
    result = convert_and_check(_model(15, feeds), target, feeds, [_expected(feeds, False)[0]])
    assert op_types(result) == ["BatchNormalization"]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("momentum", [0.9, 0.25])
@pytest.mark.parametrize("target", [13, 9, 7])
def test_expands_training(shape: Sequence[int], momentum: float, target: int) -> None:
    feeds = _feeds(shape)
    model = _model(15, feeds, ["y", "m", "v"], training_mode=1, momentum=momentum)
    result = convert_and_check(model, target, feeds, _expected(feeds, True, momentum))
    assert list(result.graph.output[0].name) == ["y"]


@pytest.mark.parametrize("target", [13, 9, 7])
def test_expands_training_of_one_channel(target: int) -> None:
    """Data of rank 1 have one channel."""
    feeds = _feeds((4,))
    model = _model(15, feeds, ["y", "m", "v"], training_mode=1)
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, [4]))
    outputs = run(model, feeds)
    assert [each.shape for each in outputs] == [(4,), (1,), (1,)]
    convert_and_check(model, target, feeds)


def test_expands_training_without_statistics() -> None:
    feeds = _feeds((2, 3, 4))
    convert_and_check(_model(14, feeds, training_mode=1), 13, feeds, _expected(feeds, True)[:1])


DTYPE_CASES = [
    pytest.param((np.float16, np.float32, np.float32), id="float16 data"),
    pytest.param((np.float32, np.float16, np.float32), id="float16 scale"),
    pytest.param((np.float32, np.float32, np.float16), id="float16 statistics"),
    pytest.param((np.float32, np.float64, np.float32), id="double scale"),
]


@pytest.mark.parametrize("dtypes", DTYPE_CASES)
@pytest.mark.parametrize("target", [13, 7])
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_casts_mixed_types(dtypes: Sequence[Any], target: int, training: bool) -> None:
    feeds = _feeds((2, 3, 4), dtypes)
    outputs = ["y", "m", "v"] if training else ["y"]
    model = _model(15, feeds, outputs, training_mode=int(training))
    expected = _expected(feeds, training)[: len(outputs)]
    assert "Cast" in op_types(convert_and_check(model, target, feeds, expected, tolerance=2e-3))


def test_trains_float16_in_float() -> None:
    feeds = _feeds((2, 3, 4), (np.float16,) * 3)
    model = _model(15, feeds, ["y", "m", "v"], training_mode=1)
    result = convert_and_check(model, 13, feeds, _expected(feeds, True), tolerance=2e-3)
    assert "Cast" in op_types(result)


def test_sets_is_test_at_opset_6() -> None:
    feeds = _feeds((2, 3, 4))
    (node,) = assert_round_trip(_model(7, feeds), 6, feeds).graph.node
    assert {each.name: each.i for each in node.attribute if each.name == "is_test"} == {"is_test": 1}


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 2, 2)], ids=str)
def test_reshapes_instances_to_rank_4(shape: Sequence[int]) -> None:
    feeds = {name: value for name, value in _feeds(shape).items() if name in ("x", "scale", "bias")}
    node = helper.make_node("InstanceNormalization", list(feeds), ["y"], name="node")
    model = build([node], feeds, {"y": TensorProto.FLOAT}, 7)
    result = assert_round_trip(model, 5, feeds)
    assert ("Reshape" in op_types(result)) == (len(shape) != 4)
