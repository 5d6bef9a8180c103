"""`fit` recognizes operators of which the runtime has a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from support.execution import op_types, run
from typer.testing import CliRunner

import opshift
from opshift.cli.main import app
from opshift.registry.runtimes.files import get_runtime
from opshift.registry.runtimes.restrictions import Restriction

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


SLOW = {"slow_kernels": {"ai.onnx.Gelu": "twice the time"}}
WRONG = {"wrong": {"ai.onnx.Gelu:20": (Restriction(reason="a reason", sometimes=True),)}}
REFUSED = {"restrictions": {"ai.onnx.Gelu": (Restriction(reason="a reason", sometimes=True),)}}


@pytest.mark.parametrize(
    ("changes", "recognize", "is_recognized", "notes"),
    [
        pytest.param(SLOW, True, False, 1, id="slow"),
        pytest.param(SLOW, "Gelu", True, 0, id="slow, but named"),
        pytest.param(WRONG, True, False, 0, id="may be wrong"),
        pytest.param(REFUSED, "Gelu", False, 0, id="may be refused"),
    ],
)
def test_leaves_operators_with_poor_kernels(
    changes: Mapping[str, Any], recognize: bool | str, *, is_recognized: bool, notes: int
) -> None:
    runtime = replace(get_runtime("onnxruntime-1.20.1"), **changes)
    report = opshift.fit(
        onnx.parser.parse_model(GELU), runtime, recognize=recognize, allow="approximate"
    ).report
    assert (report.recognition is not None) is is_recognized
    assert [each[:25] for each in report.slow_operators] == notes * ["1 node of ai.onnx.Gelu:20"]
    assert ("Operators with slow kernels" in report.notes) is bool(notes)


def test_command_recognizes(tmp_path: Path) -> None:
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(onnx.parser.parse_model(GELU), path)
    arguments = ["--runtime", "onnxruntime-1.20.1", "--recognize", "all", "--allow", "approximate"]
    result = CliRunner().invoke(app, ["fit", str(path), str(out), *arguments])
    assert result.exit_code == 0, result.output
    assert "1 x ai.onnx.Gelu:20 from 5 nodes" in result.output
    assert op_types(onnx.load(out)) == ["Gelu"]
