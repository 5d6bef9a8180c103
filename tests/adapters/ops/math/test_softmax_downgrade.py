"""Downgrades of Softmax, LogSoftmax and Hardmax below opset 13: the axis is transposed to the end."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types

OPERATORS = pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
AXES = [
    pytest.param(shape, axis, id=f"rank {len(shape)}, axis {axis}")
    for shape in [(5,), (3, 4), (2, 3, 4), (2, 3, 2, 4)]
    for axis in (None, *range(-len(shape), len(shape)))
]


def _model(op_type: str, data: Array, axis: int | None, *, shapes: bool = True) -> onnx.ModelProto:
    attributes = {} if axis is None else {"axis": axis}
    node = helper.make_node(op_type, ["x"], ["y"], name="node", **attributes)
    return build([node], {"x": data}, ["y"], 13, shapes=shapes)


def _data(shape: tuple[int, ...]) -> Array:
    data = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
    return np.asarray(np.minimum(data, np.float32(0.9)))


@pytest.mark.parametrize("target", [12, 11, 10, 7])
@pytest.mark.parametrize(("shape", "axis"), AXES)
@OPERATORS
def test_transposes_unless_the_axis_is_last(
    op_type: str, shape: tuple[int, ...], axis: int | None, target: int
) -> None:
    result = convert_and_check(_model(op_type, _data(shape), axis), target, {"x": _data(shape)})
    is_last = axis in (None, -1, len(shape) - 1)
    assert op_types(result) == ([op_type] if is_last else ["Transpose", op_type, "Transpose"])


@OPERATORS
def test_unknown_rank_requires_the_last_axis(op_type: str) -> None:
    data = _data((2, 3, 4))
    for axis in (None, -1):
        convert_and_check(_model(op_type, data, axis, shapes=False), 11, {"x": data})
    for target, axis in ((10, -1), (11, -2), (11, 1)):
        refused = refusal_of(_model(op_type, data, axis, shapes=False), target)
        assert refused.reason == "the rank of 'x' is unknown"
