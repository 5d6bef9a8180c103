"""Opsets at which the shapes of inputs are valid."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import build, run, run_reference

import opshift

X = np.zeros((2, 4, 3, 3), np.float32)


def stamped(
    opset: int, op_type: str, *arrays: np.ndarray, element: int = 1, **attributes: object
) -> onnx.ModelProto:
    feeds = {f"x{position}": array for position, array in enumerate(arrays)}
    node = helper.make_node(op_type, list(feeds), ["y"], **attributes)
    return build([node], feeds, {"y": element}, opset)


def fitting(model: onnx.ModelProto) -> int | None:
    return opshift.diagnose(model).stamps[0].fitting


@pytest.mark.parametrize(("size", "opset"), [(4, 21), (2, 20)])
@pytest.mark.parametrize("declared", [18, 20, 21, 23])
def test_group_normalization_depends_on_the_length_of_scale(size: int, opset: int, declared: int) -> None:
    scale = np.ones(size, np.float32)
    model = stamped(declared, "GroupNormalization", X, scale, scale, num_groups=2)
    is_valid = (declared >= 21) == (opset >= 21)
    assert fitting(model) == (declared if is_valid else opset)
    fixed = opshift.restamp(model)
    run_reference(fixed, {"x0": X, "x1": scale, "x2": scale})


@pytest.mark.parametrize(("op_type", "opset"), [("Add", 7), ("Max", 8), ("Pow", 7)])
def test_broadcasting_needs_a_newer_version(op_type: str, opset: int) -> None:
    row = np.ones(3, np.float32)
    model = stamped(6, op_type, X, row)
    assert fitting(model) == opset
    run(opshift.restamp(model), {"x0": X, "x1": row})
    assert fitting(stamped(6, op_type, X, X)) == 6


def test_a_scale_per_channel_needs_opset_13() -> None:
    scale, zero = np.ones(4, np.float32), np.zeros(4, np.uint8)
    assert fitting(stamped(10, "QuantizeLinear", X, scale, zero, element=2)) == 13
    assert fitting(stamped(10, "QuantizeLinear", X, scale[0], zero[0], element=2)) == 10
