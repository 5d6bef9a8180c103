"""Nodes that move float8 values in a wider type keep all bits, infinities and NaN included."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import helper
from support.execution import build, run_reference
from support.runtimes import fictional_runtime

from opshift import fit
from opshift.model.element_types import BY_NAME, type_string
from opshift.registry.runtimes.runtime import Kernel

BITS = np.arange(256, dtype=np.uint8).reshape(16, 16)

TYPES = {
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}

NODES = {
    "Transpose": helper.make_node("Transpose", ["x"], ["y"]),
    "Flatten": helper.make_node("Flatten", ["x"], ["y"], axis=0),
    "Reshape": helper.make_node("Reshape", ["x", "shape"], ["y"]),
    "Squeeze": helper.make_node("Squeeze", ["x"], ["y"]),
    "Unsqueeze": helper.make_node("Unsqueeze", ["x", "shape"], ["y"]),
    "Pad": helper.make_node("Pad", ["x", "pads"], ["y"]),
}


@pytest.mark.parametrize("op_type", NODES)
@pytest.mark.parametrize("wider", ["float16", "float"])
@pytest.mark.parametrize("name", TYPES)
def test_keeps_all_values(name: str, wider: str, op_type: str) -> None:
    constants = {
        "shape": np.array([0] if op_type == "Unsqueeze" else [32, 8]),
        "pads": np.array([0, 0, 0, 1]),
    }
    values = BITS.view(TYPES[name])
    used = {each: constants[each] for each in NODES[op_type].input[1:]}
    model = build([NODES[op_type]], {"x": values}, {"y": BY_NAME[name].number}, 21, initializers=used)
    kernels = {f"ai.onnx.{op_type}": (Kernel(versions=(1, 99), types={"T": (type_string(wider),)}),)}
    others = {f"ai.onnx.{each}": (Kernel(versions=(1, 99)),) for each in ("Cast", "Constant")}
    fitted = fit(model, fictional_runtime(opsets={"ai.onnx": 21}, operators={**kernels, **others}))
    assert len(fitted.report.bridges) == 1
    (found,), (expected,) = run_reference(fitted.model, {"x": values}), run_reference(model, {"x": values})
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))
