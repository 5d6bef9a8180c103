"""Check a proposal against every rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opshift.checker.findings import Level
from opshift.proposals.content.draft import DefinedDraft, Draft, InvalidFile
from opshift.proposals.content.findings import ProposalFinding
from opshift.proposals.content.folder import EXAMPLES, OPERATOR, PROPOSAL, ProposalFolder
from opshift.proposals.rules.rule_table import Gate, Subject, rule_table
from opshift.registry.errors import DefinitionError
from opshift.registry.registry import Registry, default_registry

if TYPE_CHECKING:
    from opshift.proposals.evidence.evidence import Evidence

LEVELS_BY_SEVERITY = tuple(Level)


@dataclass(frozen=True)
class CheckResult:
    """Result of a check.

    Attributes:
        findings: findings, the most severe first.
        draft: proposal, without the files that are invalid; `None` if `proposal.yaml` is invalid.
        evidence: results of running the proposal; `None` if it was not run.
    """

    folder: ProposalFolder
    findings: tuple[ProposalFinding, ...]
    draft: Draft | None = None
    evidence: Evidence | None = None

    @property
    def errors(self) -> tuple[ProposalFinding, ...]:
        """Findings that block acceptance."""
        return tuple(each for each in self.findings if each.level is Level.ERROR)


def check_proposal(
    path: Path | str, registry: Registry | None = None, *, gate: Gate = "check", run: bool = True
) -> CheckResult:
    """Check a proposal against every rule that applies at `gate`.

    Args:
        path: folder of the proposal.
        registry: definitions that the proposal extends. Defaults to the project's own.
        gate: `check` skips the rules that apply only on acceptance.
        run: whether to execute the proposal's code. If false, rules that need evidence are skipped.

    Raises:
        InvalidProposal: the folder does not contain a proposal.
    """
    folder = ProposalFolder(Path(path))
    registry = registry or default_registry()
    try:
        draft = Draft(folder, folder.proposal, registry)
    except DefinitionError as error:
        return CheckResult(folder, tuple(_evaluate(InvalidFile(folder, PROPOSAL, error), gate)))
    findings = list(_evaluate(draft, gate))
    try:
        operator = folder.operator(registry.types)
    except DefinitionError as error:
        findings += _evaluate(InvalidFile(folder, OPERATOR, error), gate)
        return CheckResult(folder, _sort_by_severity(findings), draft)
    defined = DefinedDraft(folder, folder.proposal, registry, operator)
    findings += _evaluate(defined, gate)
    if not run:
        return CheckResult(folder, _sort_by_severity(findings), defined)
    return _check_evidence(defined, findings, gate)


def _check_evidence(draft: DefinedDraft, findings: list[ProposalFinding], gate: Gate) -> CheckResult:
    # Imported after rule_table() has run, which reports a missing numpy as a usage error.
    from opshift.proposals.evidence.evidence import Evaluated, gather_evidence, registered_adapters

    with registered_adapters(draft) as error:
        try:
            examples = draft.folder.examples
        except DefinitionError as invalid:
            findings += _evaluate(InvalidFile(draft.folder, EXAMPLES, invalid), gate)
            return CheckResult(draft.folder, _sort_by_severity(findings), draft)
        evidence = gather_evidence(draft, examples)
        evaluated = Evaluated(draft.folder, draft.proposal, draft.registry, draft.operator, evidence, error)
        findings += _evaluate(evaluated, gate)
    return CheckResult(draft.folder, _sort_by_severity(findings), draft, evidence)


def _evaluate(subject: Subject, gate: Gate) -> Iterator[ProposalFinding]:
    for rule in rule_table().values():
        if type(subject) in rule.target_types and (rule.gate == "check" or gate == "accept"):
            yield from rule.findings(subject)


def _sort_by_severity(findings: list[ProposalFinding]) -> tuple[ProposalFinding, ...]:
    return tuple(
        sorted(
            findings,
            key=lambda each: (LEVELS_BY_SEVERITY.index(each.level), each.place.file, each.place.line),
        )
    )
