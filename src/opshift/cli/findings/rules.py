"""Facts about the rules of findings: title, advice and page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from opshift.checker.findings import Level
from opshift.checker.rule_table import rule_table as checker_rules
from opshift.cli.findings.finding import EXTERNAL_DATA, MISSING_KERNEL, Severity
from opshift.registry.changes.rules import CHANGE_RULES
from opshift.registry.explanations.refusal_causes import refusal_causes
from opshift.registry.lint.rule_table import rule_table as definition_rules

SEVERITIES: dict[Level, Severity] = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "note"}
"""Severity that code hosts show for a level."""

WRONG_OPSET, WRONG_IR_VERSION, INVALID_NODE = "declared.opset", "declared.ir-version", "declared.node"
INITIALIZER_INPUTS = "declared.initializer-inputs"
"""Rules of `opshift doctor`."""

CI_PAGE = "docs/ci.md"


class RuleFacts(NamedTuple):
    """Rule of findings: its id, severity, title, advice in Markdown, and page in the repository."""

    id: str
    level: Severity
    title: str
    advice: str
    page: str = CI_PAGE

    @property
    def help_uri(self) -> str:
        """Address of the page; empty if the package declares no repository."""
        repository = repository_address()
        return f"{repository}/blob/main/{self.page}" if repository else ""


def repository_address() -> str:
    """Return the address of the repository that the package declares; empty without one."""
    from importlib.metadata import PackageNotFoundError, metadata  # slow to import

    try:
        addresses = metadata("opshift").get_all("Project-URL") or []
    except PackageNotFoundError:  # the sources are used without an installation
        return ""
    names = dict(str(each).split(", ", 1) for each in addresses)
    return names.get("Repository", "").rstrip("/")


def rules_of(command: str) -> dict[str, RuleFacts]:
    """Return the rules that the findings of a command can have, by id."""
    alone = {"lint": _definitions, "breaking": _changes}
    if command in alone:
        return {each.id: each for each in alone[command]()}
    own = {"check": _checker, "doctor": _doctor}.get(command, tuple)
    return {each.id: each for each in (*own(), *_refusals(), *_results())}


def _checker() -> Iterator[RuleFacts]:
    for rule in checker_rules().values():
        advice = f"What to do: {rule.remedy}.\n\nSource: {rule.source}."
        yield RuleFacts(rule.id, SEVERITIES[rule.level], rule.title, advice, "docs/checker-rules.md")


def _definitions() -> Iterator[RuleFacts]:
    for rule in definition_rules().values():
        advice = f"What to do: {rule.remedy}."
        yield RuleFacts(rule.id, "error", rule.title, advice, "docs/definition-rules.md")


def _changes() -> Iterator[RuleFacts]:
    for rule in CHANGE_RULES.values():
        advice = f"Class of the change: {rule.change_class}. {rule.change_class.meaning}"
        yield RuleFacts(rule.id, "error", rule.purpose, advice, "docs/changes.md#rules")


def _doctor() -> Iterable[RuleFacts]:
    fix = "`opshift doctor --fix` corrects the version if another one is valid for all nodes."
    node = "Correct the node, or the opset import with `opshift doctor --fix`."
    free = "`opshift doctor --fix` removes them from the inputs. Keep them if callers override their values."
    return (
        RuleFacts(WRONG_OPSET, "error", "The nodes are invalid at the declared opset.", fix),
        RuleFacts(WRONG_IR_VERSION, "error", "The declared IR version does not fit the model.", fix),
        RuleFacts(INVALID_NODE, "error", "The node is invalid at the declared opset.", node),
        RuleFacts(INITIALIZER_INPUTS, "note", "Initializers are graph inputs, too.", free),
    )


def _results() -> Iterable[RuleFacts]:
    fit = "`opshift fit` converts a model so that the runtime implements all of its nodes."
    copy = "Copy the files to the folder of the output, or convert without `--external keep`."
    return (
        RuleFacts(MISSING_KERNEL, "error", "The runtime does not implement a node.", fit),
        RuleFacts(EXTERNAL_DATA, "note", "The output has weights in separate files.", copy),
    )


def _refusals() -> Iterator[RuleFacts]:
    for code, cause in refusal_causes().items():
        advice = f"{cause.cause}\n\nExample: {cause.example}\n\nWhat to do: {cause.remedy}."
        page = f"docs/refusals.md#{code.replace('.', '')}"
        yield RuleFacts(code, "error", f"{cause.title}.", advice, page)
