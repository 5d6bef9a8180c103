"""Downgrades of window functions below opset 17."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check
from support.execution import build, op_types

OPERATORS = ("HannWindow", "HammingWindow", "BlackmanWindow")
ELEMENT_TYPES = {"float": TensorProto.FLOAT, "double": TensorProto.DOUBLE, "int32": TensorProto.INT32}


@pytest.mark.parametrize("type_name", ELEMENT_TYPES)
@pytest.mark.parametrize("periodic", [0, 1], ids=["symmetric", "periodic"])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_folds_windows_of_constant_size(op_type: str, periodic: int, type_name: str) -> None:
    node = helper.make_node(
        op_type, ["size"], ["y"], name="node", periodic=periodic, output_datatype=ELEMENT_TYPES[type_name]
    )
    model = build([node], {}, {"y": ELEMENT_TYPES[type_name]}, 17, initializers={"size": np.array(12)})
    assert op_types(convert_and_check(model, 16, {}, tolerance=1e-6)) == ["Constant"]
    convert_and_check(model, 7, {}, tolerance=1e-6)


@pytest.mark.parametrize("periodic", [0, 1], ids=["symmetric", "periodic"])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_expands_windows_of_computed_size(op_type: str, periodic: int) -> None:
    node = helper.make_node(op_type, ["size"], ["y"], name="node", periodic=periodic)
    feeds = {"size": np.array(9, np.int32)}
    for target in (9, 16):
        convert_and_check(build([node], feeds, ["y"], 17), target, feeds, tolerance=1e-6)
