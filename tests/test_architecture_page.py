"""Sessions of pages produce the printed output; paths in the pages for maintainers exist."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.every_case

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PATHS = sorted(
    {
        path
        for page in (PAGE, ROOT / "CONTRIBUTING.md")
        for path in re.findall(r"`((?:[\w]+/)+(?:\w+\.\w+)?)`", page.read_text("utf-8"))
    }
)


@pytest.mark.parametrize("page", ["architecture", "queries"])
def test_sessions_produce_the_printed_output(page: str) -> None:
    # A code fence after the output would count as output, so each session ends with an empty line.
    failures, count = doctest.testfile(
        str(ROOT / "docs" / f"{page}.md"), module_relative=False, encoding="utf-8"
    )
    assert count > 0
    assert failures == 0


@pytest.mark.parametrize("path", PATHS)
def test_path_exists(path: str) -> None:
    assert (ROOT / path).exists()
