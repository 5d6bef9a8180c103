"""Rules for the code that no linter checks."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.every_case

ROOT = Path(__file__).parents[1]
MAX_LINES = 500
FOLDERS = ["adapters", "converter", "registry", "src"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_have_at_most_500_lines(folder: str) -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in (ROOT / folder).rglob("*.py")}
    assert lengths, f"{folder} holds no Python file"
    assert {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > MAX_LINES} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_modules_start_with_docstring(folder: str) -> None:
    first_lines = {path: path.read_text().split("\n", 1)[0] for path in (ROOT / folder).rglob("*.py")}
    assert first_lines, f"{folder} holds no Python file"
    assert [str(path) for path, line in first_lines.items() if not line.startswith('"""')] == []
