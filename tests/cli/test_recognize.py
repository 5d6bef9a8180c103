"""`--recognize` of `opshift convert` and `opshift plan`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx.parser
import pytest
from typer.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def swish(folder: Path) -> Path:
    model = onnx.parser.parse_model(
        """
        <ir_version: 10, opset_import: ["" : 24]>
        g (float[2, 4] x) => (float[2, 4] y, float[2, 4] z, float[2, 4] t)
        { s = Sigmoid (x)  y = Mul (x, s)  t = Sigmoid (y)  z = Mul (y, t) }
        """.replace("  y", "\ny")
        .replace("  t", "\nt")
        .replace("  z", "\nz")
    )
    path = folder / "swish.onnx"
    onnx.save(model, path)
    return path


def test_plan_lists_recognized_operators(run: Run, swish: Path) -> None:
    result = run("plan", str(swish), "--recognize", "all")
    assert "Recognized" in result.stdout
    assert "2 -> 1  Swish" in result.stdout


def test_explain_lists_near_misses(run: Run, swish: Path) -> None:
    result = run("plan", str(swish), "--recognize", "Swish", "--explain")
    assert "Not recognized" in result.stdout
    assert "'t' is also read by other nodes" in result.stdout


def test_convert_writes_recognized_operators(run: Run, swish: Path, folder: Path) -> None:
    result = run("convert", str(swish), "out.onnx", "--recognize", "Swish", "--format", "json")
    assert [each["operator"] for each in json.loads(result.stdout)["recognized"]] == ["ai.onnx.Swish:24"]
    assert [each.op_type for each in onnx.load(folder / "out.onnx").graph.node] == ["Swish", "Sigmoid", "Mul"]
