"""Check a proposal against every rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opshift.checker.findings import Level
from opshift.proposals.content.draft import Defined, Written
from opshift.proposals.content.findings import Finding
from opshift.proposals.content.folder import Folder
from opshift.proposals.rules.rule_table import Gate, rule_table
from opshift.registry.errors import DefinitionError
from opshift.registry.registry import Registry, default_registry

if TYPE_CHECKING:
    from opshift.proposals.evidence.evidence import Evidence

LEVELS = tuple(Level)


@dataclass(frozen=True)
class Checked:
    """Result of a check.

    Attributes:
        findings: findings, the most severe first.
        draft: proposal, without the files that are invalid; `None` if `proposal.yaml` is invalid.
        evidence: results of running the proposal; `None` if it was not run.
    """

    folder: Folder
    findings: tuple[Finding, ...]
    draft: Written | None = None
    evidence: Evidence | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings that block acceptance."""
        return tuple(each for each in self.findings if each.level is Level.ERROR)


def check_proposal(
    path: Path | str, registry: Registry | None = None, *, gate: Gate = "check", run: bool = True
) -> Checked:
    """Check a proposal against every rule that applies at `gate`.

    Args:
        path: folder of the proposal.
        registry: definitions that the proposal extends. Defaults to the project's own.
        gate: `check` skips the rules that apply only on acceptance.
        run: whether to execute the proposal's code. If false, rules that need evidence are skipped.

    Raises:
        InvalidProposal: the folder does not contain a proposal.
    """
    folder = Folder(Path(path))
    registry = registry or default_registry()
    try:
        draft = Written(folder, folder.proposal, registry)
    except DefinitionError as error:
        return Checked(folder, (_format_finding("proposal.format", error),))
    findings = list(_evaluate(draft, Written, gate))
    try:
        operator = folder.operator(registry.types)
    except DefinitionError as error:
        return Checked(
            folder, _sort_by_severity([*findings, _format_finding("operator.format", error)]), draft
        )
    defined = Defined(folder, folder.proposal, registry, operator)
    findings += _evaluate(defined, Defined, gate)
    if not run:
        return Checked(folder, _sort_by_severity(findings), defined)
    return _check_evidence(defined, findings, gate)


def _check_evidence(draft: Defined, findings: list[Finding], gate: Gate) -> Checked:
    # Imported after rule_table() has run, which reports a missing numpy as a usage error.
    from opshift.proposals.evidence.evidence import Ran, adapters_of, gather

    with adapters_of(draft) as error:
        try:
            examples = draft.folder.examples
        except DefinitionError as unreadable:
            return Checked(
                draft.folder,
                _sort_by_severity([*findings, _format_finding("examples.format", unreadable)]),
                draft,
            )
        evidence = gather(draft, examples)
        evaluated = Ran(draft.folder, draft.proposal, draft.registry, draft.operator, evidence, error)
        findings += _evaluate(evaluated, Ran, gate)
    return Checked(draft.folder, _sort_by_severity(findings), draft, evidence)


def _evaluate(subject: Any, kind: type, gate: Gate) -> Iterator[Finding]:
    for rule in rule_table().values():
        if rule.subject is kind and (rule.gate == "check" or gate == "accept"):
            yield from rule.findings(subject)


def _format_finding(name: str, error: DefinitionError) -> Finding:
    rule = rule_table()[name]
    return Finding(rule.id, rule.level, error.place, error.reason, error.remedy or rule.remedy)


def _sort_by_severity(findings: list[Finding]) -> tuple[Finding, ...]:
    return tuple(
        sorted(findings, key=lambda each: (LEVELS.index(each.level), each.place.file, each.place.line))
    )
