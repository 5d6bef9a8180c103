"""Options of commands over several models, and the check whether only one file is named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from opshift.cli.options import (
    OUTPUT,
    PLAIN_FORMATS,
    AdaptersOption,
    DefinitionsOption,
    FindingsFormatOption,
    Format,
    QuietOption,
    local_path,
    location,
)
from opshift.cli.paths import require_file
from opshift.model.errors import UsageError
from opshift.stores.find_models import is_file_name

SEVERAL = "Several models"
"""Title of the section of these options in the help."""

FilesFromOption = Annotated[
    list[str] | None,
    typer.Option(
        "--files-from",
        rich_help_panel=SEVERAL,
        metavar="FILE",
        help="Also read the models that a file names, one in each line; - for standard input. Repeatable.",
    ),
]

AllowEmptyOption = Annotated[
    bool,
    typer.Option(
        "--allow-empty",
        rich_help_panel=SEVERAL,
        help="Accept folders, globs and lists without models.",
    ),
]

JobsOption = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        rich_help_panel=SEVERAL,
        metavar="N",
        min=1,
        help="The number of parallel processes. With several, results arrive in any order.",
    ),
]

LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        rich_help_panel=SEVERAL,
        metavar="FILE",
        help="Record results in FILE, and repeat recorded ones of models that have not changed.",
        parser=location,
    ),
]

VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        rich_help_panel=SEVERAL,
        help="Print a row for each model. By default, a terminal gets all failures and 50 other models.",
    ),
]

SarifOption = Annotated[
    Path | None,
    typer.Option(
        "--sarif",
        rich_help_panel=OUTPUT,
        metavar="FILE",
        help="Also write the findings to FILE as SARIF 2.1.0, which code hosts show.",
        parser=local_path,
    ),
]


class GateOptions(NamedTuple):
    """Options that commands over several models share, in the order of the help, and the command's name."""

    command: str
    folders: DefinitionsOption = None
    adapters: AdaptersOption = None
    files_from: FilesFromOption = None
    allow_empty: AllowEmptyOption = False
    jobs: JobsOption = 1
    ledger: LedgerOption = None
    verbose: VerboseOption = False
    sarif: SarifOption = None
    quiet: QuietOption = False
    form: FindingsFormatOption = Format.TEXT


def single_file(names: Sequence[str], options: GateOptions) -> str | None:
    """Return the file, if it is the only model and the command prints text or JSON; otherwise `None`.

    SARIF and the formats of code hosts are the same for one model and for several. Raises a UsageError if
    nothing is named, or the file does not exist.
    """
    if not names and not options.files_from:
        remedy = "name models, folders or globs, or a list of them with --files-from"
        raise UsageError("IN is not given", remedy=remedy)
    if len(names) != 1 or options.files_from or options.form not in PLAIN_FORMATS:
        return None
    return require_file(names[0]) if is_file_name(names[0]) else None
