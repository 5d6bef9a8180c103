"""Known dimensions of a declared shape."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import TensorProto, helper

from opshift.model.types import dims_of


@pytest.mark.parametrize(
    ("declared", "dims"),
    [
        pytest.param([], (), id="scalar"),
        pytest.param([2, 0], (2, 0), id="fixed dimensions"),
        pytest.param(["n", None], (None, None), id="symbolic and missing dimensions"),
        pytest.param([-1, 3], (None, 3), id="unknown dimension written as -1"),
    ],
)
def test_returns_known_dimensions(declared: list[Any], dims: tuple[int | None, ...]) -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, declared)
    assert dims_of(value.type.tensor_type.shape) == dims
