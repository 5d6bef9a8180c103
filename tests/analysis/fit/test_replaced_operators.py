"""Models with operators that their opset deprecates or lacks, fitted to releases of onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import assert_equal, build, run

from opshift import fit

X = np.random.default_rng(2).standard_normal((1, 2, 3, 4)).astype(np.float32)
X.flat[:4] = [np.nan, np.inf, -np.inf, -0.0]


def _model(opset: int, first: onnx.NodeProto, last: onnx.NodeProto) -> onnx.ModelProto:
    scales = np.array([1, 1, 2, 3], np.float32)
    return build([first, last], {"x": X}, ["y"], opset, initializers={"scales": scales})


@pytest.mark.parametrize("runtime", ["onnxruntime-1.16.3", "onnxruntime-1.20.1", "onnxruntime-1.31.1"])
@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("last", ["Round", "Relu"])  # Round exists since opset 11, which lacks Upsample
def test_fits_nodes_of_deprecated_and_removed_operators(runtime: str, opset: int, last: str) -> None:
    upsample = helper.make_node("Upsample", ["x", "scales"], ["u"], mode="nearest")
    scaler = helper.make_node("ImageScaler", ["x"], ["u"], scale=2.0, bias=[1.0, 2.0])
    scaled = X * np.float32(2) + np.array([1, 2], np.float32).reshape(1, 2, 1, 1)
    for first, expected in ((upsample, X.repeat(2, 2).repeat(3, 3)), (scaler, scaled)):
        model = _model(opset, first, helper.make_node(last, ["u"], ["y"]))
        fitted = fit(model, runtime).model
        onnx.checker.check_model(onnx.shape_inference.infer_shapes(fitted))
        wanted = expected.round() if last == "Round" else np.where(expected > 0, expected, 0)
        if last == "Relu":
            wanted = np.where(np.isnan(expected), expected, wanted)
        assert_equal(run(fitted, {"x": X}), [wanted])
