"""Findings about files and their rules, results of commands for one model, and writers of findings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TextIO

import typer

from opshift.checker.findings import Level
from opshift.model.errors import OpshiftError
from opshift.model.shared_data import FrozenRecord
from opshift.registry.explanations import refusal_causes

if TYPE_CHECKING:
    from opshift.converter.refusals import Refusal
    from opshift.converter.report import Report


MISSING_KERNEL = "runtime.missing"
"""Id of the rule for nodes that a runtime does not implement."""

EXTERNAL_DATA = "external-data"
"""Id of the rule for external data files that were not copied."""

Severity = Literal["error", "warning", "note"]


SEVERITIES: dict[Level, Severity] = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "note"}
"""Severity that code hosts show for each level of `opshift check`."""

INITIALIZER_INPUTS = "declared.initializer-inputs"
"""Id of the rule of `opshift doctor` for initializers that are graph inputs."""

CI_PAGE = "docs/ci.md"


class FileFinding(FrozenRecord):
    """Finding about a file, as code hosts show it.

    Attributes:
        rule: the id of the rule or of the cause, such as `type.unsupported`.
        level: the severity; a command fails on an error.
        message: the problem, in one sentence.
        file: the location of the file: a path or a URL.
        place: the graph and node in a model, or the operator of a definition.
        help: advice on how to solve the problem.
        line: the line in a text file, from 1; 0 without one.
    """

    rule: str
    level: Severity
    message: str
    file: str
    place: str
    help: str = ""
    line: int = 0


def refusal_findings(refusals: Iterable[Refusal], file: str) -> Iterator[FileFinding]:
    """Yield a finding for each refusal of a conversion."""
    for each in refusals:
        yield FileFinding(
            each.code, "error", f"{each.operator}: {each.reason}", file, each.place, each.remedy
        )


def report_findings(report: Report, file: str) -> Iterator[FileFinding]:
    """Yield a finding for each refusal, and for each target runtime that does not run the result."""
    yield from refusal_findings(report.refusals, file)
    for sentence in report.unsupported:
        message, _, remedy = sentence.partition("; ")
        yield FileFinding(MISSING_KERNEL, "warning", message, file, "", remedy)


class ModelResult(FrozenRecord):
    """Result of a command for one model.

    Attributes:
        file: the location of the model: a path or a URL.
        ok: whether the command exits with 0 for this model.
        findings: the findings about the model.
        data: the JSON object that the command prints for this model alone.
    """

    file: str
    ok: bool
    findings: tuple[FileFinding, ...]
    data: Mapping[str, object]


class FindingsWriter(ABC):
    """Writer of the results of a command to stdout, or to another stream, in bounded memory.

    As a context manager, it begins and ends the document, also after an exception.
    """

    def __init__(self, command: str, stream: TextIO | None = None) -> None:
        self.command = command
        self._stream = stream
        self.failed = 0
        """Number of files with errors so far."""

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end(interrupted=error is not None, reason=str(error) if isinstance(error, OpshiftError) else "")

    def add(self, result: ModelResult) -> None:
        """Write the findings of a model."""
        self.failed += not result.ok
        self.add_findings(result.findings)

    def add_all(self, findings: Iterable[FileFinding]) -> None:
        """Write findings about several files; the findings of one file must be consecutive."""
        for file, members in groupby(findings, key=lambda each: each.file):
            found = tuple(members)
            self.add(ModelResult(file, all(each.level != "error" for each in found), found, {}))

    def write(self, text: str) -> None:
        """Write a text immediately, to show progress; the text must not contain credentials."""
        typer.echo(text, file=self._stream, nl=False)

    @abstractmethod
    def begin(self) -> None:
        """Write the part before the findings."""

    @abstractmethod
    def add_findings(self, findings: Sequence[FileFinding]) -> None:
        """Write findings about one file."""

    @abstractmethod
    def end(self, *, interrupted: bool, reason: str = "") -> None:
        """Write the part after the findings; `reason` is the error that interrupted the command."""


def incomplete(reason: str) -> str:
    """Return the message for an interrupted command; `reason` is the error, or empty."""
    return f"The run did not complete{f': {reason}' if reason else '; findings may be missing.'}"


def problem_text(finding: FileFinding) -> str:
    """Return the place in the file and the message, such as `graph: has no name`."""
    return ": ".join(filter(None, (finding.place, finding.message)))


WRONG_OPSET, WRONG_IR_VERSION, INVALID_NODE = "declared.opset", "declared.ir-version", "declared.node"


class RuleFacts(NamedTuple):
    """Rule of a finding: id, severity, title, advice in Markdown, and path of its page in the repository."""

    id: str
    level: Severity
    title: str
    advice: str
    page: str = CI_PAGE

    @property
    def help_uri(self) -> str:
        """URL of the page; empty if the package declares no repository."""
        repository = repository_address()
        return f"{repository}/blob/main/{self.page}" if repository else ""


def repository_address() -> str:
    """Return the repository URL in the package's metadata, or an empty text."""
    # imported here: slow to import, and only SARIF needs the address
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        addresses = metadata("opshift").get_all("Project-URL") or []
    except PackageNotFoundError:  # the sources are used without an installed package
        return ""
    names = dict(str(each).split(", ", 1) for each in addresses)
    return names.get("Repository", "").rstrip("/")


def rules_of(command: str) -> dict[str, RuleFacts]:
    """Return the known rules for findings of a command, by id."""
    alone = {"lint": _definition_rules, "breaking": _change_rules}
    if command in alone:
        return {each.id: each for each in alone[command]()}
    own = {"check": _checker_rules, "doctor": _doctor_rules}.get(command, tuple)
    return {each.id: each for each in (*own(), *_refusal_rules(), *_result_rules())}


# The tables of rules are imported where they are read: only a few formats list the rules of a command.


def _checker_rules() -> Iterator[RuleFacts]:
    from opshift.checker.rule_table import rule_table

    for rule in rule_table().values():
        advice = f"What to do: {rule.remedy}.\n\nSource: {rule.source}."
        yield RuleFacts(rule.id, SEVERITIES[rule.level], rule.title, advice, "docs/checker-rules.md")


def _definition_rules() -> Iterator[RuleFacts]:
    from opshift.registry.lint.rule_table import rule_table

    for rule in rule_table().values():
        advice = f"What to do: {rule.remedy}."
        yield RuleFacts(rule.id, "error", rule.title, advice, "docs/definition-rules.md")


def _change_rules() -> Iterator[RuleFacts]:
    from opshift.registry.changes.classes import CHANGE_RULES

    for rule in CHANGE_RULES.values():
        advice = f"Class of the change: {rule.change_class}. {rule.change_class.meaning}"
        yield RuleFacts(rule.id, "error", rule.purpose, advice, "docs/changes.md#rules")


def _doctor_rules() -> Iterable[RuleFacts]:
    fix = "`opshift doctor --fix` corrects the version if another one is valid for all nodes."
    node = "Correct the node, or the opset import with `opshift doctor --fix`."
    free = "`opshift doctor --fix` removes them from the inputs. Keep them if callers override their values."
    return (
        RuleFacts(WRONG_OPSET, "error", "The nodes are invalid at the declared opset.", fix),
        RuleFacts(WRONG_IR_VERSION, "error", "The declared IR version does not fit the model.", fix),
        RuleFacts(INVALID_NODE, "error", "The node is invalid at the declared opset.", node),
        RuleFacts(INITIALIZER_INPUTS, "note", "Initializers are graph inputs, too.", free),
    )


def _result_rules() -> Iterable[RuleFacts]:
    fit = "`opshift fit` converts a model so that the runtime implements all of its nodes."
    copy = "Copy the files to the folder of the output, or convert with `--external copy`."
    return (
        RuleFacts(MISSING_KERNEL, "error", "The runtime does not implement a node.", fit),
        RuleFacts(EXTERNAL_DATA, "note", "The output has weights in separate files.", copy),
    )


def _refusal_rules() -> Iterator[RuleFacts]:
    for code, cause in refusal_causes().items():
        advice = f"{cause.cause}\n\nExample: {cause.example}\n\nWhat to do: {cause.remedy}."
        page = f"docs/refusals.md#{code.replace('.', '')}"
        yield RuleFacts(code, "error", f"{cause.title}.", advice, page)
