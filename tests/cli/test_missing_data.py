"""Missing external data: the same error in each command, for one model and for several."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.small_models import save
from typer.testing import CliRunner

from opshift import InvalidModel, read_model, runs
from opshift.cli.main import app

REASON = "contains weights of the model, but is not an existing file"
REMEDY = "copy the file to this path"


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("command", ["plan", "convert", "runs", "reach", "doctor"])
def test_reports_missing_data_with_the_same_remedy(command: str, several: bool, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for name in ("a", "b"):
        save(folder / f"{name}.onnx", data="w.bin")
    (folder / "w.bin").unlink()
    source = [str(folder if several else folder / "a.onnx")]
    if command == "convert":
        source += ["--out", str(tmp_path / "out")] if several else [str(tmp_path / "out.onnx")]
    target = [] if command in ("runs", "reach") else ["--target", "17"]
    found = CliRunner().invoke(app, [command, *source, *target])
    assert found.exit_code == 1
    text = " ".join(found.output.split())
    assert REASON in text
    assert REMEDY in text
    assert "FileNotFoundError" not in text


@pytest.mark.parametrize("command", ["plan", "runs", "reach", "doctor"])
def test_reports_truncated_data(command: str, tmp_path: Path) -> None:
    path = save(tmp_path / "a.onnx", data="w.bin")
    (tmp_path / "w.bin").write_bytes(b"1234")
    found = CliRunner().invoke(app, [command, str(path), *(["-t", "17"] if command == "plan" else [])])
    assert found.exit_code == 1
    assert "w.bin: has 4 bytes, but the weights of the model end at byte" in " ".join(found.output.split())


def test_runs_requires_data_of_a_path_and_of_no_message(tmp_path: Path) -> None:
    path = save(tmp_path / "a.onnx", data="w.bin")
    (tmp_path / "w.bin").unlink()
    with pytest.raises(InvalidModel, match=REASON):
        runs(path, "onnxruntime-1.31.1")
    assert runs(read_model(path), "onnxruntime-1.31.1")
