"""Check a proposal: everything in it that breaks a rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opshift.proposals.draft import Defined, Written
from opshift.proposals.findings import Finding, Level
from opshift.proposals.folder import Folder
from opshift.proposals.rules.table import Gate, rule_table
from opshift.registry.catalogue import Registry, default_registry
from opshift.registry.errors import DefinitionError

if TYPE_CHECKING:
    from opshift.proposals.evidence.evidence import Evidence

LEVELS = tuple(Level)


@dataclass(frozen=True)
class Checked:
    """What a check found.

    Attributes:
        findings: the gravest first.
        draft: the proposal, if it could be read; with its evidence, if it was run.
    """

    folder: Folder
    findings: tuple[Finding, ...]
    draft: Written | None = None
    evidence: Evidence | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that stand in the way."""
        return tuple(each for each in self.findings if each.level is Level.ERROR)


def check_proposal(
    path: Path | str, registry: Registry | None = None, *, gate: Gate = "check", run: bool = True
) -> Checked:
    """Judge a proposal by every rule that counts at `gate`.

    Runs the code of the proposal, unless `run` is false: then nothing that needs evidence is judged.

    Raises:
        InvalidProposal: the folder holds no proposal.
    """
    folder = Folder(Path(path))
    registry = registry or default_registry()
    try:
        written = Written(folder, folder.proposal, registry)
    except DefinitionError as error:
        return Checked(folder, (_unreadable("proposal.format", error),))
    found = list(_judge(written, Written, gate))
    try:
        operator = folder.operator(registry.types)
    except DefinitionError as error:
        return Checked(folder, _sorted([*found, _unreadable("operator.format", error)]), written)
    draft = Defined(folder, folder.proposal, registry, operator)
    found += _judge(draft, Defined, gate)
    if not run:
        return Checked(folder, _sorted(found), draft)
    return _executed(draft, found, gate)


def _executed(draft: Defined, found: list[Finding], gate: Gate) -> Checked:
    from opshift.proposals.evidence.evidence import adapters_of, gather
    from opshift.proposals.ran import Ran

    with adapters_of(draft) as error:
        try:
            examples = draft.folder.examples
        except DefinitionError as unreadable:
            return Checked(draft.folder, _sorted([*found, _unreadable("examples.format", unreadable)]), draft)
        evidence = gather(draft, examples)
        ran = Ran(draft.folder, draft.proposal, draft.registry, draft.operator, evidence, error)
        found += _judge(ran, Ran, gate)
    return Checked(draft.folder, _sorted(found), draft, evidence)


def _judge(subject: Any, kind: type, gate: Gate) -> Iterator[Finding]:
    for rule in rule_table().values():
        if rule.subject is kind and (rule.gate == "check" or gate == "accept"):
            yield from rule.findings(subject)


def _unreadable(name: str, error: DefinitionError) -> Finding:
    rule = rule_table()[name]
    return Finding(rule.id, rule.level, error.place, error.reason, error.remedy or rule.remedy)


def _sorted(findings: list[Finding]) -> tuple[Finding, ...]:
    return tuple(
        sorted(findings, key=lambda each: (LEVELS.index(each.level), each.place.file, each.place.line))
    )
