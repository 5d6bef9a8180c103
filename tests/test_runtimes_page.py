"""The page on runtimes: its sessions run, and its file is valid."""

from __future__ import annotations

import doctest
import re
from dataclasses import fields
from pathlib import Path

from opshift.registry.runtimes.files import get_runtime
from opshift.registry.runtimes.runtime import Runtime

PAGE = Path(__file__).parents[1] / "docs" / "runtimes.md"


def test_sessions_print_what_the_page_shows() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.failed == 0
    assert result.attempted >= 6


def test_the_file_is_valid(tmp_path: Path) -> None:
    content, *_ = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    path = tmp_path / "npu.yaml"
    path.write_text(content, "utf-8")
    assert get_runtime(str(path)).name == "acme-npu-2.1"


def test_the_table_lists_every_key() -> None:
    table = PAGE.read_text("utf-8").partition("| key | meaning |")[2].partition("\n\n")[0]
    listed = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.partition(" | ")[0])}
    assert listed == {each.name for each in fields(Runtime)}
