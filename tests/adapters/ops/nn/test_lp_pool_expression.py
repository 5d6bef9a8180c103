"""LpPool as an average of powers, for runtimes without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.execution import assert_equal, build, op_types, run
from support.forms import FORMS, in_form

from opshift import ConversionRefused, convert_version

RANDOM = np.random.default_rng(22)
IMAGE = RANDOM.standard_normal((2, 3, 8, 9)).astype(np.float32)


WINDOWS: dict[str, dict[str, Any]] = {
    "default": {"kernel_shape": [2, 2]},
    "pads": {"kernel_shape": [3, 2], "pads": [1, 0, 2, 1], "strides": [2, 1]},
    "same upper": {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]},
    "same lower": {"kernel_shape": [3, 2], "auto_pad": "SAME_LOWER"},
    "dilations": {"kernel_shape": [2, 2], "dilations": [2, 3]},
}
# LpPool has dilations since opset 18.
OPSETS = [(name, opset) for name in WINDOWS for opset in (11, 18, 22) if name != "dilations" or opset >= 18]


@pytest.mark.parametrize(("window", "opset"), OPSETS)
@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_averages_powers_instead_of_lp_pool(window: str, exponent: int, opset: int) -> None:
    node = helper.make_node("LpPool", ["x"], ["y"], p=exponent, **WINDOWS[window])
    model = build([node], {"x": IMAGE}, ["y"], opset)
    expected = run(model, {"x": IMAGE})
    for target in (opset, 9, 24):
        result = convert_version(model, target, without="ai.onnx.LpPool")
        assert "LpPool" not in op_types(result)
        assert_equal(run(result, {"x": IMAGE}), expected)


@pytest.mark.parametrize("form", FORMS)
def test_replaces_lp_pool_in_any_form(form: str) -> None:
    nodes = [helper.make_node("LpPool", ["x"], ["y"], kernel_shape=[2, 3])]
    model, feeds = in_form(form, nodes, {"x": IMAGE}, {"y": TensorProto.FLOAT}, 18)
    assert_equal(run(convert_version(model, 18, without="ai.onnx.LpPool"), feeds), run(model, feeds))


def test_refuses_lp_pool_that_rounds_up() -> None:
    node = helper.make_node("LpPool", ["x"], ["y"], kernel_shape=[3, 3], ceil_mode=1)
    model = build([node], {"x": IMAGE}, ["y"], 22)
    with pytest.raises(ConversionRefused, match="ceil_mode") as caught:
        convert_version(model, 22, without="ai.onnx.LpPool")
    assert caught.value.refusals[0].remedy
