"""Missing external data: the same error in each command, for one model and for several."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.small_models import save
from typer.testing import CliRunner

from opshift.cli.main import app

REASON = "contains weights of the model, but is not an existing file"
REMEDY = "copy the file to this path"


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("command", ["plan", "convert"])
def test_reports_missing_data_with_the_same_remedy(command: str, several: bool, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for name in ("a", "b"):
        save(folder / f"{name}.onnx", data="w.bin")
    (folder / "w.bin").unlink()
    source = [str(folder if several else folder / "a.onnx")]
    if command == "convert":
        source += ["--out", str(tmp_path / "out")] if several else [str(tmp_path / "out.onnx")]
    found = CliRunner().invoke(app, [command, *source, "--target", "17"])
    assert found.exit_code == 1
    text = " ".join(found.output.split())
    assert REASON in text
    assert REMEDY in text
    assert "FileNotFoundError" not in text
