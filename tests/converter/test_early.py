"""Operators of later opsets that onnxruntime's optimiser writes into models of earlier ones."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, assert_equal, build, op_types, run

from opshift import ConversionRefused, convert_version

DATA: Array = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
FEEDS = {"x": DATA}
GIVEN = {"s": DATA[0, 0], "b": DATA[1, 1]}


def _model(opset: int) -> onnx.ModelProto:
    nodes = [
        helper.make_node("LayerNormalization", ["x", "s", "b"], ["h"], name="fused", epsilon=1e-3),
        helper.make_node("Softmax", ["h"], ["y"], axis=2),
    ]
    return build(nodes, FEEDS, ["y"], opset, initializers=GIVEN)


@pytest.mark.parametrize("target", [9, 11, 13, 16, 17, 20])
@pytest.mark.parametrize("opset", [11, 12, 14])
def test_fused_normalization(opset: int, target: int) -> None:
    """It stays where the target has it, and older operators take its place where not.

    Softmax, whose default form depends on the rank before 13, sees through it.
    """
    model = _model(opset)
    result = convert_version(model, target)
    assert ("LayerNormalization" in op_types(result)) == (target >= 17)
    assert_equal(run(result, FEEDS), run(model, FEEDS))


def test_other_operators_that_came_later_are_refused() -> None:
    model = build([helper.make_node("Gelu", ["x"], ["y"])], FEEDS, ["y"], 14)
    with pytest.raises(ConversionRefused, match="Gelu is not in opset 14"):
        convert_version(model, 17)
