"""`opshift convert --external`: what becomes of weights in files of their own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from typer.testing import Result

Run = Callable[..., Result]
ELSEWHERE = ("convert", "old.onnx", "sub/new.onnx", "-t", "17")


@pytest.fixture
def weights(old_model: Path) -> bytes:
    """What is in `weights.bin`, beside `old.onnx`; `sub` is an empty folder."""
    model = onnx.load(old_model)
    onnx.save(model, old_model, save_as_external_data=True, location="weights.bin", size_threshold=0)
    Path("sub").mkdir()
    return Path("weights.bin").read_bytes()


def test_beside_the_input_nothing_is_brought(run: Run, weights: bytes) -> None:
    result = run("convert", "old.onnx", "new.onnx", "-t", "17")
    assert result.exit_code == 0
    assert "weights.bin" not in result.stdout
    assert sorted(os.listdir()) == ["new.onnx", "old.onnx", "sub", "weights.bin"]


@pytest.mark.parametrize(
    ("options", "links"),
    [
        pytest.param([], 1, id="copied by default"),
        pytest.param(["--external", "copy"], 1, id="copied"),
        pytest.param(["--external", "link"], 2, id="linked"),
    ],
)
def test_weights_are(run: Run, weights: bytes, options: list[str], links: int) -> None:
    result = run(*ELSEWHERE, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "weights.bin" not in result.stdout
    assert Path("sub/weights.bin").read_bytes() == weights
    assert Path("sub/weights.bin").stat().st_nlink == links
    assert sorted(os.listdir("sub")) == ["new.onnx", "weights.bin"]


def test_weights_that_are_kept_are_spoken_of(run: Run, weights: bytes) -> None:
    Path("weights.bin").unlink()
    result = run(*ELSEWHERE, "--external", "keep")
    assert result.exit_code == 0
    assert "sub/new.onnx has weights in separate files: copy weights.bin to its folder." in result.stdout
    assert os.listdir("sub") == ["new.onnx"]


def test_what_became_of_them_as_json(run: Run, weights: bytes) -> None:
    data = json.loads(run(*ELSEWHERE, "--format", "json").stdout)
    assert (data["external_data"], data["external"]) == (["weights.bin"], "copy")


def test_weights_are_compared_too(run: Run, weights: bytes) -> None:
    assert run(*ELSEWHERE, "--verify").exit_code == 0


def test_the_output_is_no_file_with_weights(run: Run, weights: bytes) -> None:
    result = run("convert", "old.onnx", "weights.bin", "-t", "17", "--force")
    assert result.exit_code == 2
    assert "contains weights of the input model" in result.stderr
    assert Path("weights.bin").read_bytes() == weights


def test_missing_weights_are_told_before_anything_is_written(run: Run, weights: bytes) -> None:
    Path("weights.bin").unlink()
    result = run(*ELSEWHERE)
    assert result.exit_code == 1
    assert "weights.bin: contains weights of the model, but is not an existing file" in result.stderr
    assert os.listdir("sub") == []


def test_another_file_is_replaced_by_force_only(run: Run, weights: bytes) -> None:
    Path("sub/weights.bin").write_bytes(b"mine")
    refused = run(*ELSEWHERE)
    assert refused.exit_code == 2
    assert "sub/weights.bin: already exists" in refused.stderr
    assert os.listdir("sub") == ["weights.bin"]
    assert Path("sub/weights.bin").read_bytes() == b"mine"
    assert run(*ELSEWHERE, "--force").exit_code == 0
    assert Path("sub/weights.bin").read_bytes() == weights


def test_the_same_file_is_left_there(run: Run, weights: bytes) -> None:
    assert run(*ELSEWHERE).exit_code == 0
    before = Path("sub/weights.bin").stat().st_ino
    Path("sub/new.onnx").unlink()
    assert run(*ELSEWHERE).exit_code == 0
    assert Path("sub/weights.bin").stat().st_ino == before
