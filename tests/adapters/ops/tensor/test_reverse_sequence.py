"""Expansion of ReverseSequence below opset 10."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, build

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("target", [7, 9])
@pytest.mark.parametrize("time_axis", [0, 1])
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("trailing_shape", [(), (2, 3)])
def test_expands_reverse_sequence(
    trailing_shape: tuple[int, ...], is_constant: bool, time_axis: int, target: int
) -> None:
    data: Array = RANDOM.standard_normal((5, 4, *trailing_shape)).astype(np.float32)
    data = data if time_axis == 0 else data.swapaxes(0, 1).copy()
    lengths: dict[str, Array] = {"n": np.array([5, 1, 3, 4], np.int64)}
    attributes = {"time_axis": time_axis, "batch_axis": 1 - time_axis}
    node = helper.make_node("ReverseSequence", ["x", "n"], ["y"], name="node", **attributes)
    feeds: dict[str, Array] = {"x": data} if is_constant else {"x": data, **lengths}
    model = build([node], feeds, ["y"], 10, initializers=lengths if is_constant else None)
    expected = data.copy() if time_axis == 0 else data.swapaxes(0, 1).copy()
    for batch, length in enumerate(lengths["n"]):
        expected[:length, batch] = expected[:length, batch][::-1]
    convert_and_check(model, target, feeds, [expected if time_axis == 0 else expected.swapaxes(0, 1)])
