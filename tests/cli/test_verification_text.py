"""`opshift convert --verify`: the result is written only if its outputs equal those of the original."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from support.planted import install_wrong_clip
from support.running import build
from typer.testing import Result

Run = Callable[..., Result]
CONVERT = ("convert", "old.onnx", "out.onnx", "-t", "17", "--verify")


def test_prints_comparison(run: Run, old_model: Path) -> None:
    result = run(*CONVERT)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "y float [2, 3, 8, 8] 1,152 0 0 1e-05 + 0.0001 relative equal" in lines
    assert "3 samples of x tensor(float)[2, 3, 8, 8] (generated)" in lines
    assert any(line.startswith("run with onnxruntime ") for line in lines)
    assert Path("out.onnx").exists()


def test_prints_comparison_as_json(run: Run, old_model: Path) -> None:
    data = json.loads(run(*CONVERT, "--format", "json").stdout)
    assert data["output"] == "out.onnx"
    assert data["verification"]["equal"] is True
    assert [output["name"] for output in data["verification"]["outputs"]] == ["y"]


def test_verifies_only_with_option(run: Run, old_model: Path) -> None:
    data = json.loads(run(*CONVERT[:-1], "--format", "json").stdout)
    assert "verification" not in data


@pytest.fixture
def wrong_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the adapter of Clip by a wrong one."""
    install_wrong_clip(monkeypatch)


@pytest.mark.usefixtures("wrong_adapter")
def test_difference_writes_nothing(run: Run, old_model: Path) -> None:
    result = run(*CONVERT)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error: old.onnx: output 'y' differs: " in result.stderr
    assert "6.0 at [" in result.stderr
    assert "Comparison of outputs" in result.stderr
    assert os.listdir() == ["old.onnx"]


@pytest.mark.usefixtures("wrong_adapter")
def test_difference_keeps_existing_files(run: Run, old_model: Path) -> None:
    before = old_model.read_bytes()
    Path("out.onnx").write_bytes(b"mine")
    assert run(*CONVERT, "--force").exit_code == 1
    assert run("convert", "old.onnx", "--in-place", "-t", "17", "--verify").exit_code == 1
    assert (Path("out.onnx").read_bytes(), old_model.read_bytes()) == (b"mine", before)


@pytest.mark.usefixtures("wrong_adapter")
def test_prints_difference_as_json(run: Run, old_model: Path) -> None:
    result = run(*CONVERT, "--format", "json")
    data = json.loads(result.stdout)
    assert (result.exit_code, data["error"], data["place"]) == (1, "VerificationFailed", "old.onnx")
    assert data["verification"]["equal"] is False
    assert data["verification"]["outputs"][0]["differing"] > 0


@pytest.mark.usefixtures("wrong_adapter")
def test_applies_given_inputs(run: Run, old_model: Path) -> None:
    """The wrong adapter is correct for small values."""
    np.savez("inputs.npz", x=np.full((1, 3, 8, 8), 0.5, np.float32))
    result = run(*CONVERT, "--inputs", "inputs.npz")
    assert result.exit_code == 0
    assert "1 sample of x tensor(float)[1, 3, 8, 8] (given)" in result.stdout


@pytest.mark.usefixtures("wrong_adapter")
def test_applies_given_tolerance(run: Run, old_model: Path) -> None:
    assert run(*CONVERT, "--tolerance", "6").exit_code == 0


def test_writes_nothing_if_models_cannot_be_compared(run: Run, folder: Path) -> None:
    node = helper.make_node("RandomNormalLike", ["x"], ["y"])
    onnx.save(build([node], {"x": np.zeros(2, np.float32)}, ["y"], 10), "old.onnx")
    result = run(*CONVERT)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "RandomNormalLike generates random numbers" in result.stderr
    assert os.listdir() == ["old.onnx"]


def test_error_without_runtimes_has_remedy(
    run: Run, old_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("onnxruntime", "onnx"):
        monkeypatch.setitem(sys.modules, name, None)
    result = run(*CONVERT)
    assert result.exit_code == 1
    assert "pip install 'opshift[verify]'" in result.stderr
    assert os.listdir() == ["old.onnx"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            ["--verify", "--inputs", "no.npz"], "no.npz: cannot be read as arrays", id="missing inputs file"
        ),
        pytest.param(
            ["--inputs", "no.npz"], "--inputs and --tolerance require --verify", id="inputs without --verify"
        ),
        pytest.param(
            ["--tolerance", "1"], "--inputs and --tolerance require --verify", id="tolerance without --verify"
        ),
        pytest.param(["--verify", "--tolerance", "-1"], "--tolerance", id="negative tolerance"),
    ],
)
def test_refuses_wrong_usage(run: Run, old_model: Path, options: list[str], message: str) -> None:
    result = run("convert", "old.onnx", "out.onnx", "-t", "17", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert os.listdir() == ["old.onnx"]
