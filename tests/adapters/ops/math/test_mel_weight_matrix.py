"""Expansion of MelWeightMatrix below opset 17."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, build


@pytest.mark.parametrize("edges", [(0.0, 4000.0), (125.0, 7600.0)])
def test_downgrades_mel_weight_matrix(edges: tuple[float, float]) -> None:
    initializers: dict[str, Array] = {
        "b": np.array(8, np.int64),
        "n": np.array(64, np.int64),
        "r": np.array(16000, np.int64),
    }
    initializers |= {name: np.array(edge, np.float32) for name, edge in zip("lu", edges, strict=True)}
    node = helper.make_node("MelWeightMatrix", list(initializers), ["y"], name="node")
    model = build([node], {}, ["y"], 17, initializers=initializers)
    convert_and_check(model, 9, {})
