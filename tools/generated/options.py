"""Generator of docs/options.md: the options of a conversion, in Python and on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from inspect import getdoc
from pathlib import Path
from typing import Final

from opshift.cli.main import COMMANDS
from opshift.converter.convert import convert_version
from opshift.converter.options import ConvertArguments

PAGE: Final = Path("docs", "options.md")
PATHS: Final = (PAGE,)

HEAD: Final = """<!-- Written by tools/generate.py -->
# Options of conversions

The keywords of `convert_version`, `convert`, `plan_version`, `convert_file` and `convert_many`, and the
options of `opshift convert` and `opshift plan` with the same meaning. In place of `inplace=` and `registry=`,
`convert_many` has `opsets=` and `adapters=`, which name folders. [Python](python.md) and
[Command line](command-line.md) describe how they are used.

| Python | command line | meaning |
|---|---|---|
"""

PYTHON_ONLY: Final = ("inplace", "registry")
"""Keywords without a corresponding option: `--in-place` and `--opsets` are names of files and folders."""

ARGUMENT: Final = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
"""Pattern of an argument in the section `Args` of a docstring, with its description."""


def files() -> Mapping[Path, str]:
    """Return the page."""
    return {PAGE: HEAD + "\n".join(_option_rows()) + "\n"}


def _option_rows() -> Iterator[str]:
    options = {
        each.name: {parameter.name: parameter.opts[0] for parameter in each.load().params}
        for each in COMMANDS
        if each.name in ("convert", "plan")
    }
    _, _, arguments = (getdoc(convert_version) or "").partition("Args:\n")
    described = dict(ARGUMENT.findall(arguments.partition("\nReturns:")[0]))
    for name in sorted(ConvertArguments.__annotations__, key=[*described].index):
        shown = "" if name in PYTHON_ONLY else f"`{options['convert'][name]}`"
        if shown and name not in options["plan"]:
            shown += " of `convert`"
        yield f"| `{name}=` | {shown} | {' '.join(described[name].split()).replace('|', chr(92) + '|')} |"
