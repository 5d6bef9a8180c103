"""Errors of the commands: exit codes, and messages with place, reason and remedy."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from opshift.checker.findings import Finding, IllegalModel, Level
from opshift.cli.options import Format
from opshift.cli.output import page_for, print_json
from opshift.cli.page import Column, Page
from opshift.converter.refusals import ConversionRefused
from opshift.model.errors import OpshiftError, Place, UsageError, not_utf8_error
from opshift.model.message_text import count_text
from opshift.registry.errors import UnknownDomain, UnknownOperator, UnknownOpset

EXIT_FINDINGS = 1
"""Exit code after findings, and after errors other than wrong usage."""

EXIT_WRONG_USAGE = 2
"""Exit code after an invalid command line."""

MAX_FINDINGS_PER_RULE = 10
"""Maximum number of findings that are printed per rule."""

LEVEL_STYLES = {Level.ERROR: "bold red", Level.WARNING: "bold magenta", Level.INFO: "cyan"}
"""Terminal style of each level, most severe level first."""


class CommandLineError(Exception):
    """Wrong usage of the command line, described by an error that is not a `UsageError`."""

    def __init__(self, error: OpshiftError) -> None:
        self.error = error
        super().__init__(str(error))


@contextmanager
def names_in_arguments() -> Iterator[None]:
    """Raise CommandLineError for unknown operators, domains and opsets, which the command line names."""
    try:
        yield
    except (UnknownDomain, UnknownOperator, UnknownOpset) as error:
        raise CommandLineError(error) from error


def operating_system_error(error: OSError, path: str = "") -> OpshiftError:
    """Return an error of the operating system as an OpshiftError with the path as its place."""
    place = str(error.filename or path)
    remedy = "check the path, its permissions and the free space" if place else ""
    return OpshiftError(error.strerror or str(error), place=place, remedy=remedy)


@contextmanager
def add_file_to_errors(path: str) -> Iterator[None]:
    """Add `path` to errors from the `with` block that only know a place inside the file."""
    try:
        yield
    except UsageError:  # the error concerns the command line, not the file
        raise
    except OpshiftError as error:
        # each refusal, and each node without a kernel, has its own place in the file
        if hasattr(error, "refusals") or hasattr(error, "missing"):
            error.place = Place(node=path)
        elif not error.place.file and str(error.place) != path:
            error.place = Place(node=": ".join(filter(None, (path, str(error.place)))))
        raise
    except OSError as error:
        error.filename = error.filename or path
        raise
    except UnicodeDecodeError as error:  # some releases of protobuf raise this error when a field is read
        raise not_utf8_error(path) from error


def print_error(error: OpshiftError, form: Format, name: str = "") -> None:
    """Print an error as text on stderr, or as JSON on stdout; see `error_data` for `name`."""
    from opshift.analysis.fit.result import DoesNotFit
    from opshift.analysis.verification.result import VerificationFailed
    from opshift.cli.conversion_text import write_location, write_missing, write_refusals, write_verification

    if form is Format.JSON:
        print_json(error_data(error, name))
        return
    page = page_for(on_stderr=True)
    where = f"{error.place}: " if str(error.place) else ""
    if isinstance(error, ConversionRefused) and error.refusals:
        nodes = count_text(len(error.refusals), "node")
        page.line(f"error: {where}{nodes} cannot be converted; nothing was written", style="bold red")
        write_refusals(page, error.groups)
    elif isinstance(error, IllegalModel) and error.findings:
        page.line(f"error: {error.reason}; nothing was written", style="bold red")
        write_findings(page, error.findings)
    elif isinstance(error, DoesNotFit):
        nodes = count_text(error.nodes, "node")
        best = f"even at the best opset, {error.opset}"
        verdict = f"{error.runtime} does not run {nodes} of the model, {best}"
        page.line(f"error: {where}{verdict}; nothing was written", style="bold red")
        write_missing(page, error.missing)
    else:
        unwritten = "; nothing was written" if isinstance(error, VerificationFailed) else ""
        page.line(f"error: {where}{error.reason}{unwritten}", style="bold red")
        if error.remedy:
            page.line(f"  help: {error.remedy}")
        if isinstance(error, VerificationFailed):
            if error.location:
                write_location(page, error.location)
            if error.verification.outputs:
                write_verification(page, error.verification)


def error_data(error: OpshiftError, name: str = "") -> dict[str, object]:
    """Return an error as plain data for JSON; `name`, if given, replaces the name of the error's class."""
    from opshift.analysis.fit.result import DoesNotFit
    from opshift.analysis.verification.result import VerificationFailed

    data: dict[str, object] = {**error.as_dict(), "refusals": []}
    if name:
        data["error"] = name
    if isinstance(error, ConversionRefused):
        data["refusals"] = [asdict(each) for each in error.refusals]
        data["refusal_groups"] = [each.as_dict() for each in error.groups]
    if isinstance(error, DoesNotFit):
        data["missing"] = [asdict(each) for each in error.missing]
    if isinstance(error, IllegalModel):
        data["findings"] = [asdict(each) for each in error.findings]
    if isinstance(error, VerificationFailed):
        data["verification"] = error.verification.as_dict()
        data["location"] = asdict(error.location) if error.location else None
    return data


def write_findings(page: Page, findings: Sequence[Finding]) -> None:
    """Print the violated rules, most severe first, with the first findings and remedies of each rule."""
    from opshift.checker.rule_table import rule_table

    groups: dict[str, list[Finding]] = {}
    for each in sorted(findings, key=lambda each: tuple(LEVEL_STYLES).index(each.level)):
        groups.setdefault(each.rule, []).append(each)
    for name, members in groups.items():
        rule, shown = rule_table()[name], members[:MAX_FINDINGS_PER_RULE]
        page.blank()
        page.line(f"{rule.level} {rule.id}: {rule.title}", style=LEVEL_STYLES[rule.level])
        page.table((Column("", "cyan"), ""), [(f"  {each.place}", each.reason) for each in shown])
        more = len(members) - len(shown)
        if more:
            page.line(f"  ... and {more:,} more; `--format json` lists all")
        for remedy in dict.fromkeys(each.remedy for each in shown):
            page.prose(f"help: {remedy}", indent=2)
