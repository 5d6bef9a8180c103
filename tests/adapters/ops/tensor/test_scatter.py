"""Scatter below opset 9."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.running import Array, build

RANDOM = np.random.default_rng(0)
DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
def test_rewrites_scatter(constant: bool, axis: int, target: int) -> None:
    updates = -1 - RANDOM.random((2, 2, 3)).astype(np.float32)
    indices: Array = RANDOM.permuted(np.tile(np.arange(DATA.shape[axis]), (2, 2, 3, 1)), axis=-1)[..., 0]
    indices[...] = np.arange(updates.shape[axis]).reshape([-1 if dim == axis else 1 for dim in range(3)])
    indices[0, 0, 0] = min(indices[0, 0, 0], DATA.shape[axis] - 1)
    node = helper.make_node("Scatter", ["x", "i", "u"], ["y"], name="node", axis=axis)
    feeds: dict[str, Array] = {"x": DATA, "u": updates}
    index_input: dict[str, Array] = {"i": indices}
    feeds |= {} if constant else index_input
    model = build([node], feeds, ["y"], 9, initializers=index_input if constant else None)
    expected = DATA.copy()
    np.put_along_axis(
        expected[tuple(slice(None if dim == axis else n) for dim, n in enumerate((2, 2, 3)))],
        indices,
        updates,
        axis,
    )
    convert_and_check(model, target, feeds, [expected])
