"""Rules of the code that no linter knows."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST = 300


@pytest.mark.parametrize("folder", ["registry", "adapters", "converter", "proposals", "src"])
def test_no_file_is_longer_than_300_lines(folder: str) -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in (ROOT / folder).rglob("*.py")}
    assert lengths, f"{folder} holds no Python file"
    assert {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > LONGEST} == {}


@pytest.mark.parametrize("folder", ["registry", "adapters", "converter", "proposals", "src"])
def test_every_module_says_what_it_is(folder: str) -> None:
    first = {path: path.read_text().split("\n", 1)[0] for path in (ROOT / folder).rglob("*.py")}
    assert first, f"{folder} holds no Python file"
    assert [str(path) for path, line in first.items() if not line.startswith('"""')] == []
