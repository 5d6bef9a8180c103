"""Commands of `docs/proposals.md`, run as written in an empty folder."""

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
from support.execution import Array, op_types, opset_of, run
from support.released import remove_later_versions
from typer.testing import CliRunner

from opshift.cli.main import app
from opshift.registry.fingerprints import LOCK, build_lock, lock_text
from opshift.registry.registry import Registry

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "proposals.md"
EXAMPLE = GUIDE.parents[1] / "src" / "opshift" / "proposals" / "examples" / "squareplus"
BLOCK = re.compile(r"^```sh( fails)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:.*<<'EOF'\n(?:.*\n)*?EOF|.*)\n")


def _commands() -> Iterator[tuple[str, bool]]:
    """Yield each command with its input lines, and whether it must fail."""
    for must_fail, block in BLOCK.findall(GUIDE.read_text("utf-8")):
        for command in COMMAND.findall(block):
            yield command.strip("\n"), bool(must_fail)


def _run(command: str) -> int:
    """Run opshift in this process, which is faster, and all other commands in a shell."""
    if command.startswith("opshift "):
        return CliRunner().invoke(app, shlex.split(command)[1:], catch_exceptions=False).exit_code
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(["bash", "-c", command], env={**os.environ, "PATH": path}, check=False).returncode


@pytest.fixture(scope="module")
def finished_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder after all commands of the guide."""
    folder, home = tmp_path_factory.mktemp("guide"), Path.cwd()
    before = _definitions()
    os.chdir(folder)
    try:
        for command, must_fail in _commands():
            assert (_run(command) != 0) is must_fail, command
            if "copytree" in command and remove_later_versions(Path("opsets")):
                # The checkout has accepted operators, whose fingerprints the copy must not have.
                lock = build_lock(Registry((Path("opsets"),)).operators())
                Path("opsets", LOCK).write_text(lock_text(lock), "utf-8")
    finally:
        os.chdir(home)
    assert _definitions() == before
    return folder


def _definitions() -> dict[Path, int]:
    """Return the times of the project's own definitions, which the commands leave unchanged."""
    return {path: path.stat().st_mtime_ns for path in (GUIDE.parents[1] / "opsets").rglob("*.*")}


def _squareplus(x: Array, b: float) -> Array:
    return np.asarray((x + np.sqrt(x * x + b)) / 2)


@pytest.mark.some_cases(1)
@pytest.mark.parametrize(
    "path",
    [
        "opsets/ai.onnx/Squareplus.yaml",
        "opsets/pages/ai.onnx/Squareplus-29.md",
        "opsets/CHANGELOG.md",
        "opsets/fingerprints.yaml",
        "squareplus.html",
    ],
)
def test_guide_ends_with_accepted_operator(finished_folder: Path, path: str) -> None:
    content = (finished_folder / path).read_text("utf-8")
    assert "Squareplus" in content


def test_downgraded_model_computes_same_outputs(finished_folder: Path) -> None:
    older = onnx.load(finished_folder / "older.onnx")
    x = np.array([[-3, 0, 1]], np.float32)
    assert opset_of(older) == 17
    assert "Squareplus" not in op_types(older)
    np.testing.assert_allclose(run(older, {"x": x})[0], _squareplus(-x, 2.0), rtol=1e-6)


def test_upgrade_restores_model(finished_folder: Path) -> None:
    model, newer = (onnx.load(finished_folder / name) for name in ("model.onnx", "newer.onnx"))
    assert opset_of(newer) == 29
    assert newer.graph == model.graph


@pytest.mark.parametrize("name", ["operator.yaml", "reference.py", "examples.yaml"])
def test_guide_has_files_of_worked_example(finished_folder: Path, name: str) -> None:
    assert (finished_folder / "squareplus" / name).read_text("utf-8") == (EXAMPLE / name).read_text("utf-8")
