"""Warnings of conversions and plans about nodes that the target runtime does not implement."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx_ir
import pytest
from support.toy_runtime import model
from typer.testing import Result

import opshift

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


@pytest.mark.parametrize("command", [["plan"], ["convert", "--out", "converted"]])
def test_warns_about_several_models(run: Run, models: Path, command: list[str]) -> None:
    result = run(*command, "narrow.onnx", "float.onnx", "--target", "onnxruntime-1.31")
    assert result.exit_code == 0
    assert "runtime.missing: 1 model, 1 finding" in result.stdout
    assert "help: `opshift fit IN OUT --runtime onnxruntime-1.31.1`" in result.stdout
    assert f"narrow.onnx: {WARNING.removesuffix(';')}" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (
            "openvino-2026.4.1",
            "openvino-2026.4.1 does not run the result: 2 inputs of unknown rank; declare the shape of 'x'",
        ),
        (
            "onnxruntime-1.31",
            "onnxruntime-1.31.1 does not run the result: nodes with the same name; rename one of the nodes",
        ),
    ],
)
def test_names_what_the_caller_has_to_change(run: Run, folder: Path, target: str, expected: str) -> None:
    changed = model("a = Relu (x) b = Relu (z) y = Add (a, b)", "float[] x, float[] z")
    for each in changed.graph.node[:2]:
        each.name = "relu"
    del changed.opset_import[1:]  # openvino does not import the other domains
    onnx.save(changed, folder / "model.onnx")
    result = run("plan", "model.onnx", "--target", target)
    assert f"warning: {expected}" in " ".join(result.stdout.split())
    assert "opshift fit IN OUT" not in result.stdout
    advice = run("runs", "model.onnx", "--runtime", target).stdout
    assert expected.partition("; ")[2] in " ".join(advice.split())
    assert "missing version" not in advice
    assert "try opshift fit" not in advice


def test_describes_missing_kernels_in_sarif(run: Run, models: Path) -> None:
    found = run("plan", "narrow.onnx", "-t", "onnxruntime-1.31", "--format", "sarif")
    (log,) = json.loads(found.stdout)["runs"]
    assert [(each["ruleId"], each["level"]) for each in log["results"]] == [("runtime.missing", "warning")]
    (rule,) = (each for each in log["tool"]["driver"]["rules"] if each["id"] == "runtime.missing")
    assert rule["shortDescription"]["text"] == "The runtime does not implement a node."


def test_writes_missing_kernels_into_reports(run: Run, models: Path) -> None:
    run("plan", "narrow.onnx", "-t", "onnxruntime-1.31", "--report", "plan.md")
    assert WARNING in Path("plan.md").read_text().replace("\\", "")


CONVERSIONS: dict[str, Callable[[onnx.ModelProto], opshift.Report]] = {
    "message": lambda model: opshift.convert(model, "onnxruntime-1.31").report,
    "onnx_ir": lambda model: opshift.convert(onnx_ir.from_proto(model), ["onnxruntime-1.31"]).report,
    "file": lambda model: opshift.convert_file("narrow.onnx", "out.onnx", "onnxruntime-1.31"),
}


@pytest.mark.parametrize("convert", CONVERSIONS.values(), ids=list(CONVERSIONS))
def test_reports_of_python_contain_missing_kernels(
    models: Path, convert: Callable[[onnx.ModelProto], opshift.Report]
) -> None:
    report = convert(onnx.load("narrow.onnx"))
    (sentence,) = report.unsupported
    assert sentence.startswith(WARNING)
    assert f"warning: {sentence}" in str(report).splitlines()


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
