"""Warnings of `convert` and `plan` about nodes that the target runtime does not implement."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from support.toy_runtime import model
from typer.testing import Result

Run = Callable[..., Result]

WARNING = "onnxruntime-1.31.1 does not implement all nodes of the result: Add:14 (bfloat16);"


@pytest.fixture
def models(folder: Path) -> Path:
    """Write a model that onnxruntime does not run, and one that it runs."""
    onnx.save(model("y = Add (x, x)", "bfloat16[2] x"), folder / "narrow.onnx")
    onnx.save(model("y = Add (x, x)"), folder / "float.onnx")
    return folder


@pytest.mark.parametrize("command", [["plan"], ["convert", "--force"]])
def test_warns_about_missing_kernels(run: Run, models: Path, command: list[str]) -> None:
    out = ["out.onnx"] if command[0] == "convert" else []
    result = run(*command, "narrow.onnx", *out, "--target", "onnxruntime-1.31")
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert f"warning: {WARNING} `opshift fit IN OUT --runtime onnxruntime-1.31.1`" in text
    data = run(*command, "narrow.onnx", *out, "-t", "onnxruntime-1.31", "--format", "json").stdout
    (sentence,) = json.loads(data)["unsupported"]
    assert sentence.startswith(WARNING)


@pytest.mark.parametrize(
    ("name", "target"),
    [("float.onnx", "onnxruntime-1.31"), ("narrow.onnx", "21"), ("narrow.onnx", "onnx-1.16")],
)
def test_does_not_warn_without_reason(run: Run, models: Path, name: str, target: str) -> None:
    result = run("plan", name, "--target", target)
    assert result.exit_code == 0
    assert "warning" not in result.stdout


def test_converts_models_that_cannot_be_checked(run: Run, folder: Path) -> None:
    header = '<domain: "local", opset_import: ["" : 20, "local" : 1]>'
    calls = [f"{header} F{each} (a) => (b) {{ b = local.F{each + 1} (a) }}" for each in range(60)]
    functions = "\n".join([*calls, f"{header} F60 (a) => (b) {{ b = Relu (a) }}"])
    onnx.save(model("y = local.F0 (x)", functions=functions), folder / "deep.onnx")
    assert run("runs", "deep.onnx", "-r", "onnxruntime-1.31").exit_code == 1
    result = run("convert", "deep.onnx", "out.onnx", "--target", "onnxruntime-1.31")
    assert result.exit_code == 0, result.stderr
    assert "warning" not in result.stdout
