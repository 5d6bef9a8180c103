"""Generator of docs/commands.md: all commands with their help and examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

from opshift.cli.main import COMMANDS, Command

PAGE: Final = Path("docs", "commands.md")
HEAD: Final = """<!-- Written by tools/generate.py -->
# Commands

All commands of opshift. `opshift COMMAND --help` lists the arguments and options of one.
[Command line](command-line.md) describes what they have in common.
"""


PATHS: Final = (PAGE,)


def files() -> Mapping[Path, str]:
    """Return the page."""
    ordered = sorted(COMMANDS, key=lambda each: [*SECTIONS].index(each.section))
    parts = [HEAD]
    for section, commands in groupby(ordered, key=lambda each: each.section):
        parts.append(f"## {section}\n")
        parts += (part for each in commands for part in _command_lines(each))
    return {PAGE: "\n".join(parts)}


SECTIONS: Final = tuple(dict.fromkeys(each.section for each in COMMANDS))


def _command_lines(command: Command) -> Iterator[str]:
    loaded = command.load()
    paragraphs = (loaded.help or "").replace("\b", "").strip().split("\n\n")
    yield f"### opshift {command.name}\n"
    yield " ".join(paragraphs[0].split()) + "\n"
    subcommands = getattr(loaded, "commands", {})
    lines = [f"opshift {command.name} {each}".rstrip() for each in (command.examples or subcommands)]
    yield "\n".join(("```sh", *lines, "```\n"))
