"""Edit YAML files as lines, which preserves comments and layout."""

import re
from pathlib import Path

from opshift.registry.yaml_files import place_of

HEADER = "# yaml-language-server: $schema=../schema.json\n"
"""Schema comment for editors, the first line of operator files."""


TEMPLATES = Path(__file__).parents[1] / "templates"
"""Folder of the templates for new proposals."""


def without_questions(text: str) -> str:
    """Return a definition without the comments of the templates, which address the author."""
    templates = (path.read_text("utf-8") for path in TEMPLATES.glob("*.yaml.template"))
    lines = (line.strip() for template in templates for line in template.splitlines())
    questions = {line for line in lines if line.startswith("#")}
    return "".join(line for line in text.splitlines(keepends=True) if line.strip() not in questions)


def version_block(path: Path, position: int) -> str:
    """Return the lines of one version of an operator file."""
    lines = path.read_text("utf-8").splitlines()
    start = place_of(path, ("versions", position)).line - 1
    end = start + 1
    while end < len(lines) and (lines[end].startswith("  ") or not lines[end].strip()):
        end += 1
    return "\n".join(lines[start:end]).rstrip() + "\n"


def without_key(block: str, key: str) -> str:
    """Return the lines of a version without one of its keys."""
    return re.sub(rf"^  {key}:.*\n(?:   .*\n)*", "", block, flags=re.MULTILINE)


def quote_yaml(text: str) -> str:
    """Return a text as a single-quoted YAML scalar."""
    return "'" + text.replace("'", "''") + "'"
