"""Softmax, LogSoftmax, Hardmax: another dimension than the last trades places with it before 13."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build, op_types

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
OPERATORS = pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
AXES = [
    pytest.param(shape, axis, id=f"rank {len(shape)}, axis {axis}")
    for shape in [(5,), (3, 4), (2, 3, 4), (2, 3, 2, 4)]
    for axis in (None, *range(-len(shape), len(shape)))
]


def _model(op: str, data: Array, axis: int | None, *, shapes: bool = True) -> onnx.ModelProto:
    stated = {} if axis is None else {"axis": axis}
    node = helper.make_node(op, ["x"], ["y"], name="node", **stated)
    return build([node], {"x": data}, ["y"], 13, shapes=shapes)


def _data(shape: tuple[int, ...]) -> Array:
    data = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
    return np.asarray(np.minimum(data, np.float32(0.9)))


@pytest.mark.parametrize("target", [12, 11, 10, 7])
@pytest.mark.parametrize(("shape", "axis"), AXES)
@OPERATORS
def test_numbers_stay_the_same(
    op: str, shape: tuple[int, ...], axis: int | None, target: int, converted: Converted
) -> None:
    result = converted(_model(op, _data(shape), axis), target, {"x": _data(shape)})
    is_last = axis in (None, -1, len(shape) - 1)
    assert op_types(result) == ([op] if is_last else ["Transpose", op, "Transpose"])


@OPERATORS
def test_the_last_of_an_unknown_rank(op: str, converted: Converted, refusal: Refusing) -> None:
    data = _data((2, 3, 4))
    for axis in (None, -1):
        converted(_model(op, data, axis, shapes=False), 11, {"x": data})
    for target, axis in ((10, -1), (11, -2), (11, 1)):
        found = refusal(_model(op, data, axis, shapes=False), target)
        assert found.reason == "the rank of 'x' is unknown"
