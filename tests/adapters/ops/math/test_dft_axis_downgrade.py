"""Downgrade of DFT to opset 17: the axis moves to an attribute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, build

SIGNAL = np.random.default_rng(1).random((2, 5, 6, 1)).astype(np.float32)


def _dft_model(inputs: list[str], initializers: Mapping[str, Array], **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node("DFT", inputs, ["y"], name="node", **attributes)
    return build([node], {"x": SIGNAL}, ["y"], 20, initializers=initializers)


@pytest.mark.parametrize(
    ("inputs", "initializers"),
    [
        pytest.param(["x"], {}, id="default axis"),
        pytest.param(["x", "", "axis"], {"axis": np.array(1, np.int64)}, id="explicit axis"),
        pytest.param(["x", "", "axis"], {"axis": np.array(-2, np.int64)}, id="negative axis"),
        pytest.param(["x", "n"], {"n": np.array(4, np.int64)}, id="explicit length"),
    ],
)
@pytest.mark.parametrize(
    "attributes", [{}, {"onesided": 1}, {"inverse": 1}], ids=["forward", "onesided", "inverse"]
)
def test_moves_the_dft_axis_to_an_attribute(
    inputs: list[str], initializers: Mapping[str, Array], attributes: Mapping[str, int]
) -> None:
    result = convert_and_check(_dft_model(inputs, initializers, **attributes), 19, {"x": SIGNAL})
    assert "axis" in {each.name for each in result.graph.node[0].attribute}
