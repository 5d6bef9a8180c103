"""Models in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.small_models import save


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with ten models below `in`: one is refused, and one is not a model."""
    monkeypatch.chdir(tmp_path)
    for number in range(8):
        save(Path("in", str(number % 3), f"{number}.onnx"), fill=number)
    save(Path("in/refused.onnx"), "Gelu")
    Path("in/broken.onnx").write_bytes(b"\xff" * 9)
    return tmp_path
