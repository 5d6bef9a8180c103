"""Pieces of YAML files as lines, so that what people wrote stays as it is."""

from __future__ import annotations

import re
from pathlib import Path

from opshift.registry.yaml_files import line_of

HEADER = "# yaml-language-server: $schema=../schema.json\n"


def version_block(path: Path, position: int) -> str:
    """The lines of one version of an operator file."""
    lines = path.read_text("utf-8").splitlines()
    start = line_of(path, ("versions", position)) - 1
    end = start + 1
    while end < len(lines) and (lines[end].startswith("  ") or not lines[end].strip()):
        end += 1
    return "\n".join(lines[start:end]).rstrip() + "\n"


def up_to_version(path: Path, position: int) -> str:
    """The lines of an operator file before one of its versions; all of them if it has no such version."""
    text = path.read_text("utf-8")
    return text[: text.index(version_block(path, position).rstrip("\n"))]


def without_key(block: str, key: str) -> str:
    """A version's lines without one of its keys."""
    return re.sub(rf"^  {key}:.*\n(?:   .*\n)*", "", block, flags=re.MULTILINE)


def without_header(text: str) -> str:
    """An operator file without the line that is for editors."""
    return text.removeprefix(HEADER)


def quoted(text: str) -> str:
    """A text as YAML writes it on one line."""
    return "'" + text.replace("'", "''") + "'"
