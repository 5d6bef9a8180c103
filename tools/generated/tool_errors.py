"""Generator of docs/errors-elsewhere.md: errors of other tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Final

from opshift.catalogue.documents import heading_anchor
from opshift.registry.explanations import ToolError, tool_errors

HEAD: Final = """<!-- Written by tools/generate.py -->
# Errors of other tools

Messages of runtimes, checkers and converters about models, their causes, and the commands that solve them.
`...` is a part that differs from model to model. `opshift explain "the message"` finds an entry.

The commands read `model.onnx`. Replace the number after `--target` by the opset that you need, or name a
release of the program that runs the model; `opshift targets` lists them. `opshift plan` shows the changes.

| message | cause |
|---|---|
"""


PAGE: Final = Path("docs", "errors-elsewhere.md")
PATHS: Final = (PAGE,)


def files() -> Mapping[Path, str]:
    """Return the page."""
    rows = (
        f"| `{text}` | [{each.title}](#{heading_anchor(each.title)}) |\n"
        for each in tool_errors()
        for text in each.texts
    )
    sections = map(_error_section, tool_errors())
    return {PAGE: HEAD + "".join((*rows, *sections))}


def _error_section(error: ToolError) -> str:
    messages = "\n".join(error.texts)
    commands = "\n".join(f"# {each.note}\n{each.run}" if each.note else each.run for each in error.commands)
    sources = ", ".join(f"[{_source_link(each)}]({each})" for each in error.sources)
    cause = fill(error.cause, 119, break_on_hyphens=False, break_long_words=False)
    return (
        f"\n## {error.title}\n\nMessages of {error.tools}:\n\n```text\n{messages}\n```\n\n{cause}\n\n"
        f"```sh\n{commands}\n```\n\nReported in {sources}.\n"
    )


def _source_link(address: str) -> str:
    owner, name, _, number = address.removeprefix("https://github.com/").split("/")
    return f"{owner}/{name}#{number}"
