"""Command groups that print help by sections, and turn errors into a message and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from io import TextIOWrapper
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, NoReturn, Protocol, cast

import typer
from typer.core import TyperCommand, TyperGroup

from opshift.cli.errors import (
    EXIT_FINDINGS,
    EXIT_WRONG_USAGE,
    CommandLineError,
    operating_system_error,
    print_error,
)
from opshift.cli.options import Format
from opshift.model.errors import OpshiftError, UsageError

ARGUMENTS, OPTIONS, COMMANDS = "Arguments", "Options", "Commands"
"""Section titles of parameters and commands without a `rich_help_panel`, typer's name for a section."""

SUMMARY_LENGTH = 100
"""Maximum length of a command's summary in the list of commands, in characters."""

SHOWS_ALL = "opshift.help_all"
"""Key in the `meta` of a context; if its value is true, the help shows all options."""

NAME_STYLE = typer.colors.CYAN

NON_BREAKING_HYPHEN = "\u2011"

AnyCommand = TyperCommand | TyperGroup


class AfterImports(NamedTuple):
    """The argument `after_imports` of `opshift.cli.main.main`, as the object of the context of a command."""

    run: Callable[[], None]


class Formatter(Protocol):
    """Formatter of help texts. Its class belongs to click or to typer, depending on typer's version."""

    def section(self, name: str) -> AbstractContextManager[None]:
        """Write a section title, and indent the text that is written in the `with` block."""
        ...

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write rows of a name and a wrapped text."""


def write_options(command: AnyCommand, ctx: typer.Context, formatter: Formatter) -> None:
    """Write the arguments, then the options by section; options without a section are last.

    If a command has main options, `--help` omits its other options, and `--help-all` shows all.
    """
    main = () if ctx.meta.get(SHOWS_ALL) else getattr(command, "main_options", ())
    rows = []
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        is_main = not main or parameter.param_type_name == "argument" or not main.isdisjoint(parameter.opts)
        if record is not None and is_main:
            default = ARGUMENTS if parameter.param_type_name == "argument" else OPTIONS
            rows.append((_section_of(parameter, default), record))
    rows.sort(key=lambda row: (row[0] != ARGUMENTS, row[0] == OPTIONS))
    _write_sections(rows, formatter)


def show_all_options(ctx: typer.Context, is_requested: bool) -> None:
    """If `--help-all` is given, print the help with all options and exit."""
    if is_requested and not ctx.resilient_parsing:
        ctx.meta[SHOWS_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


HelpAllOption = Annotated[
    bool,
    typer.Option("--help-all", is_eager=True, callback=show_all_options, help="Show all options and exit."),
]


def write_commands(summaries: Iterable[tuple[str, str, str]], formatter: Formatter) -> None:
    """Write commands by section; `summaries` yields a section, a name and a summary for each command."""
    _write_sections(((section, (name, text)) for section, name, text in summaries), formatter)


def summaries(group: TyperGroup, ctx: typer.Context) -> Iterator[tuple[str, str, str]]:
    """Yield the section, name and first sentence of the help of each command of a group."""
    for command in (group.get_command(ctx, name) for name in group.list_commands(ctx)):
        if command is not None:
            text = command.get_short_help_str(limit=SUMMARY_LENGTH)
            yield _section_of(command, COMMANDS), command.name or "", text


def _section_of(item: object, default: str) -> str:
    title = getattr(item, "rich_help_panel", None)
    return title if isinstance(title, str) else default


def _write_sections(rows: Iterable[tuple[str, tuple[str, str]]], formatter: Formatter) -> None:
    """Group rows of a section title, a name and a text by title, and write them in order of first use."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for title, (name, text) in rows:
        sections.setdefault(title, []).append((_styled(name, NAME_STYLE), keep_words(text)))
    for title, listed in sections.items():
        with formatter.section(_styled(title, bold=True)):
            formatter.write_dl(listed)


def _styled(text: str, color: str | None = None, *, bold: bool = False) -> str:
    """Return a text with ANSI colours, or unchanged if NO_COLOR is set or TERM is `dumb`."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return typer.style(text, color, bold=bold or None)


def keep_words(text: str | None) -> str:
    """Replace hyphens by non-breaking hyphens, because the help formatter breaks lines at hyphens."""
    return (text or "").replace("-", NON_BREAKING_HYPHEN)


def restore_words(text: str) -> str:
    """Restore the hyphens that `keep_words` replaced."""
    return text.replace(NON_BREAKING_HYPHEN, "-")


class HelpCommand(TyperCommand):
    """Command whose help groups arguments and options by section.

    Attributes:
        main_options: names of the options that `--help` shows; if empty, `--help` shows all options.
    """

    main_options: frozenset[str] = frozenset()

    def get_help(self, ctx: object) -> str:
        """Return the help, without line breaks at hyphens."""
        self.help = keep_words(self.help)
        return restore_words(super().get_help(cast("typer.Context", ctx)))

    def format_options(self, ctx: object, formatter: Formatter) -> None:
        """Write the arguments and options."""
        write_options(self, cast("typer.Context", ctx), formatter)


EXIT_INTERRUPTED = 130
"""Exit code after Ctrl+C: 128 plus the number of SIGINT, as in shells."""

ParserError: type[Exception] = typer.BadParameter.__mro__[1]
"""Base class of the parser's errors. It belongs to click or to typer, depending on typer's version."""


def examples_text(command: str, examples: Iterable[str]) -> str | None:
    """Return the examples section of a command's help; `None` without examples.

    Each example has the arguments after the name of the command.
    """
    lines = [f"  opshift {command} {example}".rstrip() for example in examples]
    # \b keeps the line breaks of the paragraph
    return "\n".join(("\b", "Examples:", *lines)) if lines else None


def require_subcommand(context: typer.Context) -> None:
    """Print the help and exit with `EXIT_WRONG_USAGE` if no subcommand is given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(EXIT_WRONG_USAGE)


class SubcommandGroup(TyperGroup):
    """Command group whose help groups commands and options by section."""

    def get_help(self, ctx: object) -> str:
        """Return the help, without line breaks at hyphens."""
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
    """Return an empty command group with the help text `about`."""
    group = typer.Typer(cls=SubcommandGroup, rich_markup_mode=None)
    group.callback(invoke_without_command=True, help=about)(require_subcommand)
    return group


class CommandGroup(SubcommandGroup):
    """Group of all commands. Exit codes: 0 success, 1 findings or errors, 2 wrong usage, 130 interrupted."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> NoReturn:
        """Run a command and exit with its exit code."""
        arguments = list(sys.argv[1:] if args is None else args)
        # look at the raw arguments, because the parser may fail before it reads --format
        is_json = "--format=json" in arguments or ("--format", "json") in pairwise(arguments)
        _escape_unknown_characters()
        options |= {"prog_name": "opshift", "standalone_mode": False}
        try:
            code = super().main(arguments, *rest, **options)
        except typer.Abort:
            code = EXIT_INTERRUPTED
        except (OpshiftError, CommandLineError, ParserError, OSError) as error:
            code = _report(error, Format.JSON if is_json else Format.TEXT)
        if code == EXIT_INTERRUPTED:  # typer returns this exit code after Ctrl+C
            typer.echo("error: interrupted", err=True)
        sys.exit(code if isinstance(code, int) else 0)


def _escape_unknown_characters() -> None:
    """Let stdout and stderr escape characters that their encoding lacks, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _report(error: Any, form: Format) -> int:
    if isinstance(error, OpshiftError):
        _print(error, form)
        return EXIT_WRONG_USAGE if isinstance(error, UsageError) else EXIT_FINDINGS
    if isinstance(error, OSError):
        _print(operating_system_error(error), form, type(error).__name__)
        return EXIT_FINDINGS
    if isinstance(error, CommandLineError):
        _print(error.error, form)
        return EXIT_WRONG_USAGE
    if form is Format.TEXT and error.ctx:
        typer.echo(error.ctx.get_usage(), err=True)
    command = error.ctx.command_path if error.ctx else "opshift"
    reported = OpshiftError(error.format_message(), remedy=f"see {command} --help")
    _print(reported, form, type(error).__name__)
    return EXIT_WRONG_USAGE


def _print(error: OpshiftError, form: Format, name: str = "") -> None:
    """Print an error; if stdout cannot be written, print text on stderr instead of JSON."""
    try:
        print_error(error, form, name)
    except OSError:
        if form is Format.TEXT:
            raise
        print_error(error, Format.TEXT, name)
