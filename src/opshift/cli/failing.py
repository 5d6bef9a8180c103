"""How a command fails: one message that says what, where, why and what to do, and an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from opshift.cli.options import Format
from opshift.cli.output import Page, counted
from opshift.converter.errors import ConversionRefused, InvalidModel, UsageError
from opshift.registry.errors import OpshiftError, Place

FINDINGS = 1
WRONG_USAGE = 2
INTERRUPTED = 130
WrongCommandLine: type[Any] = typer.BadParameter.__mro__[1]
"""What the parser raises; depending on typer's version it is click's or typer's own."""


class Misused(Exception):
    """Wrong usage that is described by an error which elsewhere is none."""

    def __init__(self, error: OpshiftError) -> None:
        self.error = error
        super().__init__(str(error))


class Commands(TyperGroup):
    """The group of all commands; its exit codes are 0 done, 1 findings or a refusal, 2 wrong usage."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> NoReturn:
        """Run a command, and leave with its exit code."""
        arguments = list(sys.argv[1:] if args is None else args)
        form = Format.JSON if _wants_json(arguments) else Format.TEXT
        self._prepare_output()
        options |= {"prog_name": "opshift", "standalone_mode": False}
        try:
            code = super().main(arguments, *rest, **options)
        except Misused as wrong:
            code = _fail(wrong.error, form, WRONG_USAGE)
        except OpshiftError as error:
            code = _fail(error, form, WRONG_USAGE if isinstance(error, UsageError) else FINDINGS)
        except WrongCommandLine as error:
            code = _fail_usage(error, form)
        except OSError as error:
            code = _fail(_of_system(error), form, FINDINGS, type(error).__name__)
        except typer.Abort:
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)

    def _prepare_output(self) -> None:
        """Help is boxed and coloured in a terminal only, and no character is too odd for a stream."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        if not sys.stdout.isatty():
            for each in (self, *self.commands.values()):
                each.rich_markup_mode = None  # type: ignore[attr-defined]  # typer's commands have it


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Name the file in errors that know only the place in it."""
    try:
        yield
    except ConversionRefused as error:  # its refusals have their own places
        error.place = Place(node=str(path))
        raise
    except OpshiftError as error:
        if not error.place.file and str(error.place) != str(path):
            error.place = Place(node=": ".join(filter(None, (str(path), str(error.place)))))
        raise
    except UnicodeDecodeError as error:
        raise InvalidModel("a name in the model is not UTF-8 text", place=str(path)) from error


def _wants_json(arguments: list[str]) -> bool:
    """Whether JSON is asked for; the command line may be too wrong to be parsed."""
    return "--format=json" in arguments or ("--format", "json") in pairwise(arguments)


def _of_system(error: OSError) -> OpshiftError:
    return OpshiftError(error.strerror or str(error), place=str(error.filename or ""))


def _fail_usage(error: Any, form: Format) -> int:
    command = error.ctx.command_path if error.ctx else "opshift"
    if form is Format.TEXT and error.ctx:
        typer.echo(error.ctx.get_usage(), err=True)
    wrong = OpshiftError(error.format_message(), remedy=f"see {command} --help")
    return _fail(wrong, form, WRONG_USAGE, type(error).__name__)


def _fail(error: OpshiftError, form: Format, code: int, name: str = "") -> int:
    refusals = error.refusals if isinstance(error, ConversionRefused) else ()
    if form is Format.JSON:
        data = {**error.as_dict(), "refusals": [asdict(each) for each in refusals]}
        typer.echo(json.dumps({**data, "error": name or data["error"]}, indent=2))
        return code
    page = Page(on_stderr=True)
    if refusals:
        from opshift.cli.summary import write_refusals

        nodes = counted(len(refusals), "node")
        page.line(f"error: {error.place}: {nodes} cannot be converted; nothing was written", style="bold red")
        write_refusals(page, refusals, most=10)
        return code
    where = f"{error.place}: " if str(error.place) else ""
    page.line(f"error: {where}{error.reason}", style="bold red")
    if error.remedy:
        page.line(f"  help: {error.remedy}")
    return code
