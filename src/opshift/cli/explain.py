"""`opshift explain`: errors of other tools."""

from typing import Annotated

import typer

from opshift.cli.errors import EXIT_FINDINGS
from opshift.cli.options import Format, FormatOption
from opshift.cli.output import print_result
from opshift.cli.page import Page


def explain(
    message: Annotated[
        list[str] | None,
        typer.Argument(metavar="MESSAGE", help="The message, or a part of it; without one, all are listed."),
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Explain an error of another tool about a model.

    Prints the cause of an error of a runtime, checker or converter, such as "Unsupported model IR version",
    and the commands that solve it. Exits with 1 if no known error matches.
    """
    from opshift.registry.record import to_plain_data
    from opshift.registry.tool_errors import ToolError, tool_errors

    text = " ".join(message or ())
    found = [each for each in tool_errors() if not message or each.matches(text)]

    def write(page: Page) -> None:
        if not found:
            page.line("No known error matches. `opshift explain` without a message lists all.")
            page.line("If the model does not load at all, run `opshift inspect` or `opshift doctor` on it.")
        elif not message:
            page.table(("error", "tools"), [(each.texts[0], each.tools) for each in found])
        else:
            for position, each in enumerate(found):
                if position:
                    page.blank()
                _write(page, each)

    def _write(page: Page, error: ToolError) -> None:
        page.title(f"{error.title} ({error.tools})")
        page.prose(error.cause)
        page.blank()
        for command in error.commands:
            page.line(command.run, style="cyan")
            if command.note:
                page.prose(command.note, indent=4)

    print_result(form, {"errors": [to_plain_data(each) for each in found]}, write)
    if not found:
        raise typer.Exit(EXIT_FINDINGS)
