"""`opshift explain`: errors of other tools, and refusals."""

from __future__ import annotations

from typing import Annotated

import typer

from opshift.cli import completion
from opshift.cli.errors import EXIT_FINDINGS
from opshift.cli.options import Format, FormatOption
from opshift.cli.output import print_result
from opshift.cli.page import Page
from opshift.model.message_text import hint_at_similar
from opshift.registry.explanations import (
    Cause,
    Solution,
    ToolError,
    commands_about,
    refusal_causes,
    tool_errors,
)
from opshift.registry.record import to_plain_data


def explain(
    message: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MESSAGE",
            autocompletion=completion.complete_refusal_code,
            help="The message or a part of it, or the code of a refusal; without one, all are listed.",
        ),
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Explain an error of another tool about a model, or a refusal of opshift.

    Prints the cause of an error of a runtime, checker or converter, such as "Unsupported model IR version",
    and the commands that solve it. For the code of a refusal, such as type.unsupported, prints its meaning.
    For another text, prints commands about the operators, opsets, IR versions and domains that it mentions.
    Exits with 1 if nothing matches.
    """
    from opshift.registry.registry import default_registry

    text = " ".join(message or ())
    errors = [each for each in tool_errors() if not message or each.matches(text)]
    causes = {code: each for code, each in refusal_causes().items() if not message or code == text}
    mentioned = () if errors or causes else commands_about(text, default_registry())

    def write(page: Page) -> None:
        if not message:
            page.table(("error", "tools"), [(each.texts[0], each.tools) for each in errors])
            page.heading("Refusals of opshift")
            page.table(("code", "meaning"), [(code, each.title) for code, each in causes.items()])
        for each in errors if message else ():
            _write_error(page, each)
        for code, cause in causes.items() if message else ():
            _write_cause(page, code, cause)
        if not errors and not causes:
            similar = hint_at_similar(text, refusal_causes())
            page.line(f"No known error matches{similar or '.'}")
            for command in mentioned:
                _write_command(page, command)
            page.line("`opshift explain` without a message lists all errors and codes.")
            page.line("If a program cannot load the model, run `opshift doctor` on it.")

    data = {
        "errors": [to_plain_data(each) for each in errors],
        "refusals": {code: to_plain_data(each) for code, each in causes.items()},
        "mentioned": [to_plain_data(each) for each in mentioned],
    }
    print_result(form, data, write)
    if not errors and not causes and not mentioned:
        raise typer.Exit(EXIT_FINDINGS)


def _write_error(page: Page, error: ToolError) -> None:
    page.title(f"{error.title} ({error.tools})")
    page.prose(error.cause)
    page.blank()
    for command in error.commands:
        _write_command(page, command)
    page.blank()


def _write_command(page: Page, command: Solution) -> None:
    page.line(command.run, style="cyan")
    if command.note:
        page.prose(command.note, indent=4)


def _write_cause(page: Page, code: str, cause: Cause) -> None:
    page.title(f"{code}: {cause.title}")
    page.prose(cause.cause)
    page.prose(f"Example: {cause.example}")
    page.prose(f"What to do: {cause.remedy}.")
