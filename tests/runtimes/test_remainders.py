"""Remainders of floats, which OpenVINO computes with `fmod` 1 at any opset."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from support.execution import assert_equal, run, run_reference

from opshift import convert_version, fit, runs

RUNTIME = "openvino-2026.4.1"
X = np.array([-4.3, 7.2, 5.0, 4.3, -7.2, 0.0])
Y = np.array([2.1, -3.4, 8.0, -2.1, 3.4, 5.0])


def _model(element_type: str, opset: int, fmod: int) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]>'
        f"example ({element_type}[6] x, {element_type}[6] y) => ({element_type}[6] z)"
        f"{{ z = Mod <fmod = {fmod}> (x, y) }}"
    )


@pytest.mark.parametrize("opset", [10, 13, 28])
@pytest.mark.parametrize("element_type", ["float", "double", "float16"])
def test_runs_with_the_sign_of_the_dividend(element_type: str, opset: int) -> None:
    assert runs(_model(element_type, opset, fmod=1), RUNTIME)


@pytest.mark.parametrize("element_type", ["float", "double"])
def test_corrects_the_sign_at_an_older_opset(element_type: str) -> None:
    model = _model(element_type, 28, fmod=0)
    assert not runs(model, RUNTIME)
    fitted = fit(model, RUNTIME).model
    assert runs(fitted, RUNTIME)
    dtype = {"float": np.float32, "double": np.float64}[element_type]
    feeds = {"x": X.astype(dtype), "y": Y.astype(dtype)}
    assert_equal(run(convert_version(fitted, 13), feeds), run_reference(model, feeds))
