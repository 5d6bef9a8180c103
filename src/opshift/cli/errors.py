"""Errors of the commands: exit codes, and messages with place, reason and remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from opshift.checker.findings import Finding, Level
from opshift.cli.options import Format
from opshift.cli.output import count_text, print_json
from opshift.cli.page import Column, Page
from opshift.converter.errors import ConversionRefused, Refusal
from opshift.model.errors import InvalidModel, OpshiftError, Place, UsageError

EXIT_FINDINGS = 1
"""Exit code after findings, a refused conversion or an unreadable file."""

EXIT_WRONG_USAGE = 2
"""Exit code after an invalid command line."""


class CommandLineError(Exception):
    """Wrong usage of the command line, described by an error that is not a `UsageError`."""

    def __init__(self, error: OpshiftError) -> None:
        self.error = error
        super().__init__(str(error))


@contextmanager
def add_file_to_errors(path: Path) -> Iterator[None]:
    """Add the path of the file to errors that only know a place inside the file."""
    try:
        yield
    except UsageError:  # concerns the command line, not the file
        raise
    except ConversionRefused as error:  # each refusal has its own place in the file
        error.place = Place(node=str(path))
        raise
    except OpshiftError as error:
        if not error.place.file and str(error.place) != str(path):
            error.place = Place(node=": ".join(filter(None, (str(path), str(error.place)))))
        raise
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    except UnicodeDecodeError as error:  # some releases of protobuf raise it when a field is read
        raise InvalidModel("a string in the model is not valid UTF-8", place=str(path)) from error


def print_error(error: OpshiftError, form: Format, name: str = "") -> None:
    """Print an error as text on stderr, or as JSON on stdout.

    Args:
        error: the error.
        form: the output format.
        name: the value of the JSON key `error`; by default the name of the error's class.
    """
    from opshift.analysis.verification.result import VerificationFailed
    from opshift.checker.findings import IllegalModel

    if form is Format.JSON:
        print_json(error_data(error, name))
        return
    refusals = error.refusals if isinstance(error, ConversionRefused) else ()
    findings = error.findings if isinstance(error, IllegalModel) else ()
    from opshift.cli.output import page_for

    page = page_for(on_stderr=True)
    where = f"{error.place}: " if str(error.place) else ""
    if refusals:
        _print_refusals(page, where, refusals)
        return
    if findings:
        _print_findings(page, error, findings)
        return
    page.line(f"error: {where}{error.reason}", style="bold red")
    if error.remedy:
        page.line(f"  help: {error.remedy}")
    if isinstance(error, VerificationFailed) and error.verification.outputs:
        from opshift.cli.verification_text import write_verification

        write_verification(page, error.verification)


def error_data(error: OpshiftError, name: str = "") -> dict[str, object]:
    """Return an error as plain data for JSON; `name` replaces the name of its class."""
    from opshift.analysis.verification.result import VerificationFailed
    from opshift.checker.findings import IllegalModel

    kind = {"error": name} if name else {}
    data: dict[str, object] = {**error.as_dict(), **kind, "refusals": []}
    if isinstance(error, ConversionRefused):
        data["refusals"] = [asdict(each) for each in error.refusals]
    if isinstance(error, IllegalModel):
        data["findings"] = [asdict(each) for each in error.findings]
    if isinstance(error, VerificationFailed):
        data["verification"] = error.verification.as_dict()
    return data


def _print_refusals(page: Page, where: str, refusals: Sequence[Refusal]) -> None:
    from opshift.cli.conversion_text import write_refusals

    nodes = count_text(len(refusals), "node")
    page.line(f"error: {where}{nodes} cannot be converted; nothing was written", style="bold red")
    write_refusals(page, refusals, most=10)  # `opshift plan` prints all


def _print_findings(page: Page, error: OpshiftError, findings: Sequence[Finding]) -> None:

    page.line(f"error: {error.reason}; nothing was written", style="bold red")
    write_findings(page, findings)


MAX_FINDINGS_PER_RULE = 10
"""Maximum number of findings that are printed per rule."""

LEVEL_STYLES = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.INFO: "cyan"}
"""Terminal style of each level, most severe level first."""

FINDING_COLUMNS = (Column("", style="cyan"), Column(""))


def write_findings(page: Page, findings: Sequence[Finding]) -> None:
    """Print the violated rules, most severe first, with the first findings and remedies of each."""
    groups: dict[str, list[Finding]] = {}
    for each in sorted(findings, key=lambda each: tuple(LEVEL_STYLES).index(each.level)):
        groups.setdefault(each.rule, []).append(each)
    for members in groups.values():
        page.blank()
        _write_rule(page, members)


def _write_rule(page: Page, members: Sequence[Finding]) -> None:
    from opshift.checker.rule_table import rule_table

    rule, shown = rule_table()[members[0].rule], members[:MAX_FINDINGS_PER_RULE]
    page.line(f"{rule.level} {rule.id}: {rule.title}", style=LEVEL_STYLES[rule.level])
    page.table(FINDING_COLUMNS, [(f"  {each.place}", each.reason) for each in shown])
    if len(members) > MAX_FINDINGS_PER_RULE:
        page.line(
            f"  ... and {len(members) - MAX_FINDINGS_PER_RULE:,} more; "
            "`opshift check --format json` lists all"
        )
    for remedy in dict.fromkeys(each.remedy for each in shown):
        page.prose(f"help: {remedy}", indent=2)
