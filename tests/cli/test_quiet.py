"""`--quiet`: results, findings and errors, but neither progress nor summary."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from typer.testing import Result

Run = Callable[..., Result]
SILENT = {
    "convert": ("convert", "old.onnx", "out.onnx", "-t", "17"),
    "convert several": ("convert", "old.onnx", "--out", "out", "-t", "17"),
    "check": ("check", "old.onnx"),
    "doctor": ("doctor", "old.onnx", "out.onnx", "--fix"),
    "breaking": ("breaking", "acme"),
    "new proposal": ("proposal", "new", "proposal", "--kind", "new-operator", "--name", "Twice"),
}


@pytest.mark.parametrize("arguments", SILENT.values(), ids=SILENT)
def test_prints_nothing_about_success(
    arguments: tuple[str, ...], run: Run, old_model: Path, acme: Path
) -> None:
    done = run(*arguments, "-q")
    assert (done.exit_code, done.output) == (0, "")


RESULTS = {
    "plan": ("plan", "old.onnx", "-t", "17"),
    "reach": ("reach", "old.onnx"),
    "inspect": ("inspect", "old.onnx"),
    "doctor": ("doctor", "old.onnx"),
    "doctor as JSON": ("doctor", "old.onnx", "--format", "json"),
    "doctor of a wrong opset": ("doctor", "wrong.onnx"),
    "runs": ("runs", "old.onnx"),
    "runs that fails": ("runs", "old.onnx", "-r", "onnxruntime-coreml"),
    "compare": ("compare", "old.onnx", "old.onnx"),
    "diff-model": ("diff-model", "old.onnx", "old.onnx"),
}


@pytest.mark.parametrize("arguments", RESULTS.values(), ids=RESULTS)
def test_prints_results(arguments: tuple[str, ...], run: Run, old_model: Path) -> None:
    model = onnx.load(old_model)
    model.opset_import[0].version = 17
    onnx.save(model, "wrong.onnx")
    assert run(*arguments, "--quiet").stdout == run(*arguments).stdout != ""


def test_prints_findings_and_errors(run: Run, old_model: Path, new_model: Path) -> None:
    model = onnx.load(old_model)
    model.graph.node[0].op_type = "Nothing"
    onnx.save(model, "broken.onnx")
    found = run("check", "old.onnx", "broken.onnx", "-q")
    assert found.exit_code == 1
    assert "broken.onnx" in found.stdout
    assert "old.onnx" not in found.stdout
    refused = run("convert", "new.onnx", "out.onnx", "-t", "5", "-q")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "cannot be converted" in refused.stderr
    batch = run("convert", "new.onnx", "old.onnx", "--out", "out", "-t", "5", "-q")
    assert batch.exit_code == 1
    assert "new.onnx" in batch.stdout
    as_json = run("convert", "old.onnx", "out.onnx", "-t", "17", "-q", "--format", "json")
    assert json.loads(as_json.stdout)["output"] == "out.onnx"


COMMANDS = ["convert", "plan", "reach", "doctor", "compare", "diff-model", "check", "inspect", "lint"]
GROUPS = ["opset load", "opset release", "proposal check", "proposal render", "proposal accept"]


@pytest.mark.parametrize("command", [*COMMANDS, *GROUPS])
def test_commands_with_progress_or_summary_can_be_quiet(command: str, run: Run) -> None:
    option = "--help-all" if command == "convert" else "--help"
    assert "-q, --quiet" in run(*command.split(), option).stdout
