"""Groups of commands, which turn errors into a message and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from itertools import pairwise
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from opshift.cli.errors import EXIT_FINDINGS, EXIT_WRONG_USAGE, CommandLineError, print_error
from opshift.cli.options import Format
from opshift.model.errors import OpshiftError, UsageError

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl+C: 128 plus the number of SIGINT, as in shells."""

ParserError: type[Exception] = typer.BadParameter.__mro__[1]
"""Base class of the parser's errors. It belongs to click or to typer, depending on typer's version."""


AnyCommand = TyperCommand | TyperGroup


class SubcommandGroup(TyperGroup):
    """Group whose commands format their help like the group."""

    def get_command(self, ctx: object, cmd_name: str) -> AnyCommand | None:
        """Return a command by name, or `None` if the name is unknown."""
        command = self.commands.get(cmd_name)
        if not isinstance(command, AnyCommand):
            return None
        command.rich_markup_mode = self.rich_markup_mode
        return command


class CommandGroup(SubcommandGroup):
    """Group of all commands. Exit codes: 0 success, 1 findings or a refused conversion, 2 wrong usage."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> NoReturn:
        """Run a command and exit with its exit code."""
        arguments = list(sys.argv[1:] if args is None else args)
        form = Format.JSON if _requests_json(arguments) else Format.TEXT
        self._prepare_output()
        options |= {"prog_name": "opshift", "standalone_mode": False}
        try:
            code = super().main(arguments, *rest, **options)
        except typer.Abort:
            code = EXIT_INTERRUPTED
        except (OpshiftError, CommandLineError, ParserError, OSError) as error:
            code = _report(error, form)
        sys.exit(code if isinstance(code, int) else 0)

    def _prepare_output(self) -> None:
        """Escape characters that a stream cannot encode; use boxes and colours in a terminal only."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        if not sys.stdout.isatty():
            self.rich_markup_mode = None  # commands inherit it


def _requests_json(arguments: list[str]) -> bool:
    # looks at the raw arguments: errors of the parser are reported as JSON, too
    return "--format=json" in arguments or ("--format", "json") in pairwise(arguments)


def _report(error: Any, form: Format) -> int:
    """Print an error and return its exit code."""
    if isinstance(error, CommandLineError):
        print_error(error.error, form)
        return EXIT_WRONG_USAGE
    if isinstance(error, OpshiftError):
        print_error(error, form)
        return EXIT_WRONG_USAGE if isinstance(error, UsageError) else EXIT_FINDINGS
    if isinstance(error, OSError):
        print_error(_system_error(error), form, type(error).__name__)
        return EXIT_FINDINGS
    _report_parser_error(error, form)
    return EXIT_WRONG_USAGE


def _report_parser_error(error: Any, form: Format) -> None:
    command = error.ctx.command_path if error.ctx else "opshift"
    if form is Format.TEXT and error.ctx:
        typer.echo(error.ctx.get_usage(), err=True)
    reported = OpshiftError(error.format_message(), remedy=f"see {command} --help")
    print_error(reported, form, type(error).__name__)


def _system_error(error: OSError) -> OpshiftError:
    return OpshiftError(error.strerror or str(error), place=str(error.filename or ""))
