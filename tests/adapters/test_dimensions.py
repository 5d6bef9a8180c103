"""The sizes that a shape states."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import TensorProto, helper

from opshift.adapters.dimensions import sizes_of


@pytest.mark.parametrize(
    ("stated", "sizes"),
    [
        pytest.param([], (), id="a scalar"),
        pytest.param([2, 0], (2, 0), id="numbers"),
        pytest.param(["n", None], (None, None), id="a name, and nothing"),
        pytest.param([-1, 3], (None, 3), id="what some exporters write for what is not known"),
    ],
)
def test_sizes(stated: list[Any], sizes: tuple[int | None, ...]) -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, stated)
    assert sizes_of(value.type.tensor_type.shape) == sizes
