"""Range before 11, and its float16 before 27."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, build, op_types

Converted = Callable[..., onnx.ModelProto]
Ends = tuple[float, float, float]
NAMES = ("start", "limit", "delta")
CASES = [
    pytest.param((0, 5, 1), np.int64, id="counting"),
    pytest.param((10, 4, -2), np.int32, id="counting down"),
    pytest.param((10, 3, -2), np.int16, id="not reaching the limit"),
    pytest.param((5, 0, 1), np.int64, id="empty"),
    pytest.param((0.1, 0.7, 0.1), np.float32, id="a limit that is nearly met"),
    pytest.param((-1.5, 2.0, 0.25), np.float64, id="in double"),
]


def _model(ends: Ends, kind: type[np.generic], *, constant: bool) -> tuple[onnx.ModelProto, dict[str, Array]]:
    values = {name: np.array(value, kind) for name, value in zip(NAMES, ends, strict=True)}
    feeds = {} if constant else values
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    node = helper.make_node("Range", list(NAMES), ["y"], name="node")
    return build([node], feeds, {"y": element}, 11, initializers=values if constant else None), feeds


@pytest.mark.parametrize(("ends", "kind"), CASES)
def test_constant_ends_make_a_constant(ends: Ends, kind: type[np.generic], converted: Converted) -> None:
    model, feeds = _model(ends, kind, constant=True)
    for target in (7, 10):
        made_of = op_types(converted(model, target, feeds))
        assert made_of == ["Constant"] or target < 9


@pytest.mark.parametrize(("ends", "kind"), CASES)
def test_computed_ends(ends: Ends, kind: type[np.generic], converted: Converted) -> None:
    model, feeds = _model(ends, kind, constant=False)
    for target in (7, 8, 9, 10):
        converted(model, target, feeds)


def test_a_long_range_is_not_written_out(converted: Converted) -> None:
    model, feeds = _model((0, 100_000, 1), np.int64, constant=True)
    assert "NonZero" in op_types(converted(model, 10, feeds))


def test_float16_is_worked_out_in_float(converted: Converted) -> None:
    feeds = {name: np.array(value, np.float16) for name, value in zip(NAMES, (0, 3, 0.1), strict=True)}
    model = build([helper.make_node("Range", list(NAMES), ["y"])], feeds, {"y": TensorProto.FLOAT16}, 27)
    model.ir_version = 10
    for target in (10, 26):
        converted(model, target, feeds, tolerance=1e-3)
