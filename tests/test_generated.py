"""Generated files are up to date, and one command writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

import generate
from generate import GENERATORS, main
from generated import changes, schema

PATHS = [str(path) for generator in GENERATORS for path in generator.PATHS]
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """Return the new content of all generated files by path."""
    return {str(path): text for generator in GENERATORS for path, text in generator.files().items()}


def test_generators_name_their_files(files: dict[str, str]) -> None:
    assert list(files) == PATHS


@pytest.mark.parametrize("path", PATHS)
def test_generated_file_is_up_to_date(path: str, files: dict[str, str]) -> None:
    assert (ROOT / path).read_text("utf-8") == files[path], "run python tools/generate.py"


def test_writes_stale_files_unless_checking(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, files: dict[str, str]
) -> None:
    known = {path: files[str(path)] for path in changes.PATHS}
    monkeypatch.setattr(changes, "files", lambda: known)  # it takes the longest
    monkeypatch.setattr(generate, "GENERATORS", (schema, changes))
    for path in map(str, (*schema.PATHS, *changes.PATHS)):
        text = files[path]
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    assert main(["--check"], tmp_path) == 0
    first, page = tmp_path / "opsets/schema.json", tmp_path / "docs/changes.md"
    first.unlink()
    page.write_text("old")
    assert main(["--check"], tmp_path) == 1
    assert (first.exists(), page.read_text()) == (False, "old")
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
    stale_paths = ["opsets/schema.json", "docs/changes.md"]
    lines = [f"{word}: {path}" for word in ("stale", "wrote") for path in stale_paths]
    assert capsys.readouterr().out.splitlines() == lines
