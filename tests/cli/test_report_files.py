"""`--report` of `plan` and `convert`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.planted import install_wrong_clip
from typer.testing import Result

Run = Callable[..., Result]


def test_plan_writes_report(run: Run, old_model: Path) -> None:
    result = run("plan", "old.onnx", "-t", "13", "--report", "plan.html")
    assert result.exit_code == 0
    assert "<title>Plan for old.onnx</title>" in Path("plan.html").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["plan", "old.onnx", "-t", "13"], id="plan"),
        pytest.param(["convert", "old.onnx", "converted.onnx", "-t", "13"], id="convert"),
        pytest.param(["convert", "old.onnx", "converted.onnx", "-t", "13", "--verify"], id="verify"),
    ],
)
def test_json_report_equals_json_output(run: Run, old_model: Path, arguments: list[str]) -> None:
    result = run(*arguments, "--report", "report.json", "--format", "json")
    assert result.exit_code == 0
    assert json.loads(Path("report.json").read_text()) == json.loads(result.stdout)


def test_json_report_of_several_models_equals_json_output(run: Run, old_model: Path, new_model: Path) -> None:
    arguments = ["old.onnx", "new.onnx", "--out", "converted", "-t", "6", "--report", "report.json"]
    *lines, _ = run("convert", *arguments, "--format", "json").stdout.splitlines()
    expected = {"output": "converted", "files": list(map(json.loads, lines))}
    assert json.loads(Path("report.json").read_text()) == expected


def test_convert_writes_report_with_verification(run: Run, old_model: Path) -> None:
    result = run("convert", "old.onnx", "new.onnx", "-t", "13", "--verify", "--report", "report.md")
    assert result.exit_code == 0
    text = Path("report.md").read_text()
    assert "The outputs agree." in text
    assert "| bytes of the file |" in text


def test_refused_conversion_writes_report(run: Run, new_model: Path) -> None:
    result = run("convert", "new.onnx", "out.onnx", "-t", "6", "--report", "report.md")
    assert (result.exit_code, Path("out.onnx").exists()) == (1, False)
    text = Path("report.md").read_text()
    assert text.startswith("# new.onnx was not converted\n")
    assert "| ai.onnx | 18 | 6 |" in text
    assert "| graph, node 'sin1' | `ai.onnx.Sin:7` |" in text


def test_refused_conversion_writes_json(run: Run, new_model: Path) -> None:
    run("convert", "new.onnx", "out.onnx", "-t", "6", "--report", "report.json")
    data = json.loads(Path("report.json").read_text())
    assert (data["output"], data["error"], len(data["refusals"])) == (None, "ConversionRefused", 2)


def test_failed_verification_writes_report(
    run: Run, old_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_wrong_clip(monkeypatch)
    result = run("convert", "old.onnx", "out.onnx", "-t", "13", "--verify", "--report", "report.md")
    assert (result.exit_code, Path("out.onnx").exists()) == (1, False)
    text = Path("report.md").read_text()
    assert "**The outputs of the converted model differ.**" in text
    assert "First node with a different value: graph, node 'clip1'" in text


def test_report_of_several_files_has_results_and_changes(run: Run, old_model: Path) -> None:
    Path("bad.onnx").write_bytes(b"\xff" * 9)
    options = ("--out", "converted", "-t", "13", "--report", "report.html")
    assert run("convert", "old.onnx", "bad.onnx", *options).exit_code == 1
    text = Path("report.html").read_text()
    assert "<td>converted/old.onnx</td>" in text
    assert "<td>is not an ONNX model" in text
    assert "<td>check that it is the right file" in text
    assert '<h2 id="old.onnx">' in text
    assert "<code>ai.onnx.Clip:6</code>" in text


def test_refuses_suffix_before_anything_is_written(run: Run, old_model: Path) -> None:
    result = run("convert", "old.onnx", "out.onnx", "-t", "13", "--report", "report.pdf")
    assert (result.exit_code, Path("out.onnx").exists()) == (2, False)
    assert "report.pdf: unsupported suffix of a report" in result.stderr
    assert "help: name a file that ends in .html, .md or .json" in result.stderr
