"""Expansion of TensorScatter below opset 24."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, build

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("shapes", [True, False])
@pytest.mark.parametrize(
    ("axis", "mode", "write_indices"),
    [
        pytest.param(-2, "linear", [1, 3], id="write index per batch entry"),
        pytest.param(1, "circular", [4, 5], id="wrapping around the end"),
        pytest.param(3, "linear", [0, 2], id="last dimension"),
        pytest.param(-2, "linear", None, id="no write indices"),
    ],
)
def test_expands_tensor_scatter(axis: int, mode: str, write_indices: list[int] | None, shapes: bool) -> None:
    cache: Array = RANDOM.standard_normal((2, 6, 6, 6)).astype(np.float32)
    positive_axis = axis % 4
    update: Array = np.take(-cache, range(3), positive_axis)
    feeds: dict[str, Array] = {"x": cache, "u": update} | (
        {} if write_indices is None else {"w": np.array(write_indices)}
    )
    node = helper.make_node("TensorScatter", list(feeds), ["y"], name="node", axis=axis, mode=mode)
    model = build([node], feeds, ["y"], 24)
    if not shapes:
        for value in model.graph.input[:2]:
            for axis_index, dim in enumerate(value.type.tensor_type.shape.dim):
                dim.dim_param = f"{value.name}{axis_index}"
    expected = cache.copy()
    for batch in range(2):
        positions = (np.arange(3) + (write_indices or [0, 0])[batch]) % 6
        np.moveaxis(expected[batch], positive_axis - 1, 0)[positions] = np.moveaxis(
            update[batch], positive_axis - 1, 0
        )
    convert_and_check(model, 11, feeds, [expected])
