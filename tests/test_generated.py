"""Files that follow from others are what they follow from says now, and one command writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from generate import GENERATORS, main

FILES = {str(path): text for each in GENERATORS for path, text in each.files().items()}
ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("path", FILES)
def test_a_file_is_fresh(path: str) -> None:
    assert (ROOT / path).read_text("utf-8") == FILES[path], "run python tools/generate.py"


def test_what_is_stale_is_written_unless_it_is_only_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    assert main(["--check"], tmp_path) == 0
    schema, page = tmp_path / "opsets/schema.json", tmp_path / "docs/changes.md"
    schema.unlink()
    page.write_text("old")
    assert main(["--check"], tmp_path) == 1
    assert (schema.exists(), page.read_text()) == (False, "old")
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
    told = ["opsets/schema.json", "docs/changes.md"]
    lines = [f"{word}: {path}" for word in ("stale", "wrote") for path in told]
    assert capsys.readouterr().out.splitlines() == lines
