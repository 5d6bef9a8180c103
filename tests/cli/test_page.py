"""Plain text output without a terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from opshift.cli.output import page_for
from opshift.cli.page import Column, Page, number

COLUMNS = (number("nodes"), Column("operator", "cyan"), "")
NO_HEADINGS = ("", number(""))
PAGES: dict[str, tuple[Callable[[Page], None], str]] = {
    "line": (lambda page: page.line("one", style="bold"), "one\n"),
    "heading": (lambda page: page.heading("Changes"), "\nChanges\n"),
    "line with control characters": (lambda page: page.line("a\x1b[0m\nb"), "a\\x1b[0m\\nb\n"),
    "line that resembles markup": (lambda page: page.line("[b]a[/b] :smile:"), "[b]a[/b] :smile:\n"),
    "right-aligned numbers": (
        lambda page: page.table(COLUMNS, [(7, "Clip", "a"), (100, "Relu", "")]),
        "nodes  operator\n    7  Clip      a\n  100  Relu\n",
    ),
    "table without headings": (
        lambda page: page.table(NO_HEADINGS, [("ab", 1), ("c", 20)]),
        "ab   1\nc   20\n",
    ),
    "table without rows": (lambda page: page.table(COLUMNS, []), "nodes  operator\n"),
    "wide characters": (
        lambda page: page.table(NO_HEADINGS, [("形", 1), ("abc", 2)]),
        "形   1\nabc  2\n",
    ),
    "facts": (
        lambda page: page.facts({"IR version": 8, "size": "1 kB"}),
        "IR version  8\nsize        1 kB\n",
    ),
    "paragraph": (lambda page: page.prose("word " * 40), f"{'word ' * 19}word\n{'word ' * 19}word\n"),
    "indented paragraph": (
        lambda page: page.prose("ab-cd " * 20, indent=2),
        f"  {('ab-cd ' * 16).strip()}\n  {('ab-cd ' * 4).strip()}\n",
    ),
}


@pytest.mark.parametrize(("write", "text"), PAGES.values(), ids=PAGES)
def test_writes_plain_text(
    write: Callable[[Page], None], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(Page())
    assert capsys.readouterr() == (text, "")


def test_writes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    Page(on_stderr=True).line("wrong")
    assert capsys.readouterr() == ("", "wrong\n")


ENVIRONMENTS = {
    "FORCE_COLOR=1": ("FORCE_COLOR", "1", True),
    "FORCE_COLOR empty": ("FORCE_COLOR", "", False),
    "TTY_COMPATIBLE=1": ("TTY_COMPATIBLE", "1", True),
    "TTY_COMPATIBLE=0": ("TTY_COMPATIBLE", "0", False),
}


@pytest.mark.parametrize(("name", "value", "is_terminal"), ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_environment_overrides_terminal_detection(
    name: str, value: str, is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, value)
    assert (type(page_for()) is not Page) is is_terminal
