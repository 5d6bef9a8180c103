"""`opshift diff-model`: text, JSON and report."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import onnx
import pytest
from rich.console import Console
from typer.testing import Result

import opshift
from opshift.cli import diff_model
from opshift.cli.terminal import TerminalPage

Run = Callable[..., Result]


@pytest.fixture
def models(old_model: Path) -> None:
    """Write `new.onnx`, the conversion of `old.onnx` to opset 13."""
    onnx.save(opshift.convert_version(onnx.load(old_model), 13), "new.onnx")


@pytest.mark.usefixtures("models")
def test_prints_changes(run: Run) -> None:
    result = run("diff-model", "old.onnx", "new.onnx")
    assert (result.exit_code, result.stderr) == (0, "")
    assert (
        result.stdout
        == """\
old.onnx -> new.onnx
nodes: 2 changed, 1 kept; other properties: 4 differ

model
  ~ IR version: 6 -> 7
  ~ opset ai.onnx: 10 -> 13

graph
  + initializer 'const': float[] = 0
  + initializer 'const_1': float[] = 6

  2 x Clip
  ~ Clip clip1
      - attribute 'max': 6
      - attribute 'min': 0
      + input 1: const
      + input 2: const_1
  ~ Clip clip2
      - attribute 'max': 6
      - attribute 'min': 0
      + input 1: const
      + input 2: const_1
"""
    )


@pytest.mark.usefixtures("old_model")
def test_equal_models_have_no_differences(run: Run) -> None:
    assert run("diff-model", "old.onnx", "old.onnx").stdout == "old.onnx -> old.onnx\nno differences\n"


@pytest.mark.usefixtures("models")
def test_prints_json(run: Run) -> None:
    data = json.loads(run("diff-model", "old.onnx", "new.onnx", "--format", "json").stdout)
    assert (data["old"], data["new"], data["equal"]) == ("old.onnx", "new.onnx", False)
    assert data["nodes"] == {"added": 0, "removed": 0, "changed": 2, "renamed": 0, "kept": 1}


@pytest.mark.usefixtures("models")
def test_writes_report(run: Run) -> None:
    result = run("diff-model", "old.onnx", "new.onnx", "--report", "changes.html")
    assert result.stdout.endswith("\nwrote changes.html\n")
    assert "<title>old.onnx -&gt; new.onnx</title>" in Path("changes.html").read_text()


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(["old.onnx", "none.onnx"], 2, "none.onnx: file does not exist", id="missing"),
        pytest.param(["old.onnx", "bad.onnx"], 1, "bad.onnx: is not an ONNX model", id="invalid"),
        pytest.param(
            ["old.onnx", "new.onnx", "--report", "a.pdf"], 2, "a.pdf: unsupported suffix", id="suffix"
        ),
    ],
)
def test_reports_error(run: Run, arguments: list[str], code: int, message: str) -> None:
    Path("bad.onnx").write_bytes(b"\xff" * 9)
    result = run("diff-model", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_terminal(width: int) -> None:
    stream = StringIO()
    console = Console(file=stream, width=width, force_terminal=True, color_system=None, markup=False)
    page = TerminalPage(console)
    diff_model._write_diff(page, "old.onnx -> new.onnx", opshift.diff_model("old.onnx", "new.onnx"), None)
    assert max(map(len, stream.getvalue().splitlines())) <= width
    assert "  + initializer 'const_1': float[] = 6" in stream.getvalue()


def test_long_difference_is_cut(run: Run, old_model: Path) -> None:
    model = onnx.load(old_model)
    for each in range(60):
        model.metadata_props.add(key=f"key{each}", value="1")
        model.graph.node.append(onnx.helper.make_node("Abs", ["x"], [f"abs{each}"], axis=each))
        model.graph.node.append(onnx.helper.make_node("Abs", ["x"], [f"other{each}"]))
    onnx.save(model, "long.onnx")
    text = run("diff-model", "old.onnx", "long.onnx").stdout
    assert "... and 20 more changes; --format json lists all" in text
    assert "... and 21 more places; --format json lists all" in text
    assert "  + Abs -> abs1\n      + attribute 'axis': 1\n" in text
    assert "nothing -> Abs, 60 times" in text
    assert ", and 54 more" in text
