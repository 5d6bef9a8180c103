"""docs/proposals.md: its commands run as they are written, in an empty folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.running import Array, op_types, opset_of, run
from typer.testing import CliRunner

from opshift.cli.main import app

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "proposals.md"
EXAMPLE = GUIDE.parents[1] / "proposals" / "examples" / "squareplus"
BLOCK = re.compile(r"^```sh( fails)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:.*<<'EOF'\n(?:.*\n)*?EOF|.*)\n")


def _commands() -> Iterator[tuple[str, bool]]:
    """Each command with the lines that it is fed, and whether it has to fail."""
    for fails, block in BLOCK.findall(GUIDE.read_text("utf-8")):
        for command in COMMAND.findall(block):
            yield command.strip("\n"), bool(fails)


def _run(command: str) -> int:
    """Commands of opshift in this process, which saves their start; everything else in a shell."""
    if command.startswith("opshift "):
        return CliRunner().invoke(app, shlex.split(command)[1:], catch_exceptions=False).exit_code
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(["bash", "-c", command], env={**os.environ, "PATH": path}, check=False).returncode


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after all commands of the guide."""
    folder, home = tmp_path_factory.mktemp("guide"), Path.cwd()
    os.chdir(folder)
    try:
        for command, fails in _commands():
            assert (_run(command) != 0) is fails, command
    finally:
        os.chdir(home)
    return folder


def _squareplus(x: Array, b: float) -> Array:
    return np.asarray((x + np.sqrt(x * x + b)) / 2)


@pytest.mark.parametrize(
    "path",
    [
        "opsets/ai.onnx/Squareplus.yaml",
        "opsets/cases/ai.onnx/Squareplus-29.yaml",
        "opsets/CHANGELOG.md",
        "opsets/fingerprints.yaml",
        "squareplus.html",
    ],
)
def test_the_guide_ends_with_an_operator_that_is_accepted(finished: Path, path: str) -> None:
    content = (finished / path).read_text("utf-8")
    assert "Squareplus" in content or path.startswith("opsets/cases")


def test_the_model_computes_the_same_below(finished: Path) -> None:
    older = onnx.load(finished / "older.onnx")
    x = np.array([[-3, 0, 1]], np.float32)
    assert opset_of(older) == 17
    assert "Squareplus" not in op_types(older)
    np.testing.assert_allclose(run(older, {"x": x})[0], _squareplus(-x, 2.0), rtol=1e-6)


def test_the_model_comes_back_as_it_was(finished: Path) -> None:
    model, newer = (onnx.load(finished / name) for name in ("model.onnx", "newer.onnx"))
    assert opset_of(newer) == 29
    assert newer.graph == model.graph


@pytest.mark.parametrize("name", ["operator.yaml", "reference.py", "examples.yaml"])
def test_the_guide_has_the_worked_example(finished: Path, name: str) -> None:
    assert (finished / "squareplus" / name).read_text("utf-8") == (EXAMPLE / name).read_text("utf-8")


def test_the_clone_is_left_alone(finished: Path) -> None:
    assert not (GUIDE.parents[1] / "opsets" / "ai.onnx" / "Squareplus.yaml").exists()
