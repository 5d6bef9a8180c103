"""Help of the commands, and the colours of all output."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.test_output import ESCAPE, run_in_terminal
from typer.testing import Result

import opshift.cli
from opshift.cli.main import COMMANDS

pytestmark = pytest.mark.every_case

Run = Callable[..., Result]
PURPOSES = {"Target", "Shapes", "Output", "Exactness", "Private domains"}


def titles(text: str) -> list[str]:
    """Return the titles of the sections."""
    return re.findall(r"^(\w[\w ]*):$", text, re.MULTILINE)


def test_groups_commands_by_purpose(run: Run) -> None:
    shown = run("--help").stdout
    assert titles(shown) == ["Models", "Operators and opsets", "Proposals", "Options"]
    listed = re.findall(r"^  ([a-z-]+)  +\S", shown.partition("Options:")[0], re.MULTILINE)
    assert sorted(listed) == sorted(each.name for each in COMMANDS)
    assert shown.index("  convert ") < shown.index("Operators and opsets:") < shown.index("  show ")


def test_help_of_convert_shows_ten_options_and_help_all_the_others(run: Run) -> None:
    few, every = run("convert", "--help").stdout, run("convert", "--help-all").stdout
    pattern = re.compile(r"^  (?:-\w, )?(--[a-z-]+)", re.MULTILINE)
    shown = pattern.findall(few)
    assert len(set(shown) - {"--help", "--help-all"}) == 10
    assert set(shown) < set(pattern.findall(every))
    assert set(pattern.findall(every)) >= {"--reversible", "--jobs", "--opsets", "--tolerance"}
    assert len(few.splitlines()) <= 75


@pytest.mark.parametrize(("command", "option"), [("convert", "--help-all"), ("plan", "--help")])
def test_groups_options_by_purpose(command: str, option: str, run: Run) -> None:
    shown = run(command, option).stdout
    found = titles(shown)
    own = {"Verification"} if command == "convert" else set()
    assert set(found) == {"Arguments", *PURPOSES, *own, "Several models", "Options"}
    assert found[0] == "Arguments"
    assert found[-1] == "Options"
    for title, option in (("Target", "--target"), ("Exactness", "--allow"), ("Options", "--help")):
        assert option in shown.partition(f"\n{title}:\n")[2].partition("\n\n")[0]


@pytest.mark.some_cases(4)
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("command", [(), ("convert",), ("proposal",), ("opset", "export")], ids=" ".join)
def test_help_in_a_terminal_is_the_plain_help(command: tuple[str, ...], width: int, run: Run) -> None:
    shown, code = run_in_terminal(width, *command, "--help")
    plain = ESCAPE.sub("", shown)
    assert code == 0
    assert "\x1b[1mOptions\x1b[0m:" in shown
    assert max(map(len, plain.splitlines())) <= width or "Examples:" in plain
    assert not re.search(r"\w-$", plain, re.MULTILINE), "a line ends within a word"
    assert " ".join(plain.split()) == " ".join(run(*command, "--help").stdout.split())


@pytest.mark.some_cases(2)
@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
@pytest.mark.parametrize("arguments", [("--help",), ("list", "--opset", "17"), ("resolve", "Nothing")])
def test_colours_can_be_switched_off(arguments: tuple[str, ...], variables: dict[str, str]) -> None:
    shown, _ = run_in_terminal(80, *arguments, **variables)
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", shown)


def test_colours_are_readable_on_light_and_dark_backgrounds() -> None:
    """Colours with a low contrast in common themes are not used.

    The contrast of yellow is 1.7 to 1 on white in xterm, that of blue 1.6 to 1 on black in macOS. Terminals
    mix dim text with the background. Magenta, of at least 1.9 to 1, is bold.
    """
    sources = [path.read_text("utf-8") for path in Path(opshift.cli.__file__).parent.rglob("*.py")]
    pattern = r'"(?:bold )?(?:dim|yellow|blue|white|black|bright_\w+)"|"magenta"|colors\.(?!CYAN)\w+'
    assert [found for each in sources for found in re.findall(pattern, each)] == []


def test_short_output_imports_no_rich() -> None:
    code = "import sys\nfrom opshift.cli.main import app\ntry: app(['convert', '--help'])\n"
    code += "except SystemExit: print('rich' in sys.modules)"
    shown, _ = run_in_terminal(80, command=[sys.executable, "-c", code])
    assert shown.splitlines()[-1] == "False"
