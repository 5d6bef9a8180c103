"""`fit` recognizes operators of which the runtime has a kernel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from support.execution import op_types, run
from typer.testing import CliRunner

import opshift
from opshift.cli.main import app

GELU = """
    <ir_version: 8, opset_import: ["": 17]>
    main (float[N, 4] x) => (float[N, 4] y) {
        two = Constant <value = float {1.4142135381698608}> ()
        one = Constant <value = float {1.0}> ()
        half = Constant <value = float {0.5}> ()
        quotient = Div (x, two)
        error = Erf (quotient)
        sum = Add (error, one)
        product = Mul (x, sum)
        y = Mul (product, half)
    }
"""
SWISH = """
    <ir_version: 8, opset_import: ["": 17]>
    main (float[N, 4] x) => (float[N, 4] y) { gate = Sigmoid (x)  y = Mul (x, gate) }
"""


@pytest.mark.parametrize(
    ("text", "runtime", "recognize", "expected"),
    [
        pytest.param(GELU, "onnxruntime-1.20.1", True, ["Gelu"], id="kernel"),
        pytest.param(GELU, "onnxruntime-1.20.1", "Gelu", ["Gelu"], id="one operator"),
        pytest.param(GELU, "onnxruntime-1.20.1", "Mish", None, id="another operator"),
        pytest.param(GELU, "onnxruntime-1.16.3", True, None, id="opset without the operator"),
        pytest.param(SWISH, "onnxruntime-1.32.0", True, None, id="no kernel, although it has the body"),
        pytest.param(GELU, "onnxruntime-1.20.1", False, None, id="not requested"),
    ],
)
def test_recognizes_operators_with_kernels(
    text: str, runtime: str, recognize: bool | str, expected: list[str] | None
) -> None:
    model = onnx.parser.parse_model(text)
    kept = op_types(model)
    fitted = opshift.fit(model, runtime, recognize=recognize, allow="approximate")
    found = op_types(fitted.model)
    assert found == (expected or kept)
    assert (fitted.report.recognition is not None) is (expected is not None)
    assert fitted.report.nodes == (len(kept), len(found))
    assert ("Recognized operators" in fitted.report.notes) is (expected is not None)
    feeds = {"x": np.linspace(-3, 3, 8, dtype=np.float32).reshape(2, 4)}
    np.testing.assert_allclose(run(model, feeds)[0], run(fitted.model, feeds)[0], rtol=1e-5, atol=1e-6)


def test_command_recognizes(tmp_path: Path) -> None:
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(onnx.parser.parse_model(GELU), path)
    arguments = ["--runtime", "onnxruntime-1.20.1", "--recognize", "all", "--allow", "approximate"]
    result = CliRunner().invoke(app, ["fit", str(path), str(out), *arguments])
    assert result.exit_code == 0, result.output
    assert "1 x ai.onnx.Gelu:20 from 5 nodes" in result.output
    assert op_types(onnx.load(out)) == ["Gelu"]
