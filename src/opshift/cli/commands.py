"""Groups of commands, which turn errors into a message and an exit code."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from io import TextIOWrapper
from itertools import pairwise
from typing import Any, NoReturn, cast

import typer
from typer.core import TyperGroup

from opshift.cli.errors import (
    EXIT_FINDINGS,
    EXIT_WRONG_USAGE,
    CommandLineError,
    operating_system_error,
    print_error,
)
from opshift.cli.help_text import (
    Formatter,
    keep_words,
    restore_words,
    summaries,
    write_commands,
    write_options,
)
from opshift.cli.options import Format
from opshift.model.errors import OpshiftError, UsageError

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl+C: 128 plus the number of SIGINT, as in shells."""

ParserError: type[Exception] = typer.BadParameter.__mro__[1]
"""Base class of the parser's errors. It belongs to click or to typer, depending on typer's version."""


def examples_text(command: str, examples: Iterable[str]) -> str | None:
    """Return the end of a command's help: its examples, given as arguments; `None` without examples."""
    lines = [f"  opshift {command} {example}".rstrip() for example in examples]
    return "\n".join(("\b", "Examples:", *lines)) if lines else None  # \b keeps the lines as they are


def require_subcommand(context: typer.Context) -> None:
    """Print the help and exit if no subcommand is given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(EXIT_WRONG_USAGE)


class SubcommandGroup(TyperGroup):
    """Group whose help has sections."""

    def get_help(self, ctx: object) -> str:
        """Return the help."""
        self.help = keep_words(self.help)
        return restore_words(super().get_help(cast("typer.Context", ctx)))

    def summaries(self, ctx: typer.Context) -> Iterator[tuple[str, str, str]]:
        """Yield the section, name and summary of each command."""
        return summaries(self, ctx)

    def format_options(self, ctx: object, formatter: Formatter) -> None:
        """Write the commands, then the options."""
        context = cast("typer.Context", ctx)
        write_commands(self.summaries(context), formatter)
        write_options(self, context, formatter)


def subcommand_group(about: str) -> typer.Typer:
    """Return a group without commands; `about` is its help."""
    group = typer.Typer(cls=SubcommandGroup, rich_markup_mode=None)
    group.callback(invoke_without_command=True, help=about)(require_subcommand)
    return group


class CommandGroup(SubcommandGroup):
    """Group of all commands. Exit codes: 0 success, 1 findings or a refused conversion, 2 wrong usage."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> NoReturn:
        """Run a command and exit with its exit code."""
        arguments = list(sys.argv[1:] if args is None else args)
        # looks at the raw arguments: errors of the parser are reported as JSON, too
        is_json = "--format=json" in arguments or ("--format", "json") in pairwise(arguments)
        _escape_unknown_characters()
        options |= {"prog_name": "opshift", "standalone_mode": False}
        try:
            code = super().main(arguments, *rest, **options)
        except typer.Abort:
            code = EXIT_INTERRUPTED
        except (OpshiftError, CommandLineError, ParserError, OSError) as error:
            code = _report(error, Format.JSON if is_json else Format.TEXT)
        if code == EXIT_INTERRUPTED:  # which typer returns, too
            typer.echo("error: interrupted", err=True)
        sys.exit(code if isinstance(code, int) else 0)


def _escape_unknown_characters() -> None:
    """Escape characters that a stream cannot encode."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _report(error: Any, form: Format) -> int:
    """Print an error and return its exit code."""
    if isinstance(error, OpshiftError):
        print_error(error, form)
        return EXIT_WRONG_USAGE if isinstance(error, UsageError) else EXIT_FINDINGS
    if isinstance(error, OSError):
        print_error(operating_system_error(error), form, type(error).__name__)
        return EXIT_FINDINGS
    if isinstance(error, CommandLineError):
        print_error(error.error, form)
        return EXIT_WRONG_USAGE
    if form is Format.TEXT and error.ctx:
        typer.echo(error.ctx.get_usage(), err=True)
    command = error.ctx.command_path if error.ctx else "opshift"
    reported = OpshiftError(error.format_message(), remedy=f"see {command} --help")
    print_error(reported, form, type(error).__name__)
    return EXIT_WRONG_USAGE
