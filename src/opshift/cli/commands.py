"""The group of all commands: whatever happens in one, a message and an exit code come out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from opshift.cli.failing import FINDINGS, WRONG_USAGE, Misused, tell
from opshift.cli.options import Format
from opshift.converter.errors import UsageError
from opshift.registry.errors import OpshiftError

INTERRUPTED = 130
WrongCommandLine: type[Any] = typer.BadParameter.__mro__[1]
"""What the parser raises; depending on typer's version it is click's or typer's own."""


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
        except typer.Abort:
            code = INTERRUPTED
        except (OpshiftError, Misused, WrongCommandLine, OSError) as error:
            code = _told(error, form)
        sys.exit(code if isinstance(code, int) else 0)

    def _prepare_output(self) -> None:
        """Help is boxed and coloured in a terminal only, and no character is too odd for a stream."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        if not sys.stdout.isatty():
            for each in (self, *self.commands.values()):
                each.rich_markup_mode = None  # type: ignore[attr-defined]  # typer's commands have it


class Subcommands(TyperGroup):
    """Commands whose help looks like that of the group above them."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by its name."""
        found: Any = super().get_command(ctx, cmd_name)
        if found is not None:
            found.rich_markup_mode = self.rich_markup_mode
        return found


def _wants_json(arguments: list[str]) -> bool:
    """Whether JSON is asked for; the command line may be too wrong to be parsed."""
    return "--format=json" in arguments or ("--format", "json") in pairwise(arguments)


def _told(error: Any, form: Format) -> int:
    """Print the error, and give its exit code."""
    if isinstance(error, Misused):
        tell(error.error, form)
        return WRONG_USAGE
    if isinstance(error, OpshiftError):
        tell(error, form)
        return WRONG_USAGE if isinstance(error, UsageError) else FINDINGS
    if isinstance(error, OSError):
        tell(_of_system(error), form, type(error).__name__)
        return FINDINGS
    _tell_usage(error, form)
    return WRONG_USAGE


def _tell_usage(error: Any, form: Format) -> None:
    command = error.ctx.command_path if error.ctx else "opshift"
    if form is Format.TEXT and error.ctx:
        typer.echo(error.ctx.get_usage(), err=True)
    wrong = OpshiftError(error.format_message(), remedy=f"see {command} --help")
    tell(wrong, form, type(error).__name__)


def _of_system(error: OSError) -> OpshiftError:
    return OpshiftError(error.strerror or str(error), place=str(error.filename or ""))
