"""Check a proposal against every rule, and determine its status."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opshift.checker.findings import Level
from opshift.proposals.content.draft import DefinedDraft, Draft, InvalidFile
from opshift.proposals.content.findings import ProposalFinding
from opshift.proposals.content.folder import EXAMPLES, OPERATOR, PROPOSAL, SHAPES, ProposalFolder, fingerprint
from opshift.proposals.content.models import Proposal, SignOff
from opshift.proposals.content.sign_off import REQUIRED_SIGN_OFFS, sign_off_count
from opshift.proposals.rules.rule_table import Gate, rule_table
from opshift.registry.errors import DefinitionError
from opshift.registry.registry import Registry, registry_or_default

LEVELS = tuple(Level)
"""Levels of findings, the most severe first."""


@dataclass(frozen=True)
class CheckResult:
    """Result of a check: findings, the most severe first, and the last valid stage of the proposal.

    `draft` is `None` if `proposal.yaml` is invalid, and an `Evaluated` object if the examples were run.
    """

    folder: ProposalFolder
    findings: tuple[ProposalFinding, ...]
    draft: Draft | None

    @property
    def errors(self) -> tuple[ProposalFinding, ...]:
        """Findings that block acceptance."""
        return tuple(each for each in self.findings if each.level is Level.ERROR)


def check_proposal(
    path: Path | str,
    registry: Registry | None = None,
    *,
    gate: Gate = "check",
    run: bool = True,
    trusted: Path | None = None,
) -> CheckResult:
    """Check a proposal, which extends `registry`, against every rule that applies at `gate`.

    If `run` is true, the proposal's code is executed; otherwise the rules that need its results are skipped.
    `trusted` is the folder with `reviewers.yaml`, by default the last folder of the registry.

    Raises:
        InvalidProposal: the folder does not contain a proposal.
        UsageError: the folder does not exist, or numpy is not installed.
    """
    folder = ProposalFolder(Path(path))
    findings: list[ProposalFinding] = []
    draft = None
    # An exception must not leave the adapters of the proposal registered: close the generator.
    with closing(_stages(folder, registry_or_default(registry), run, trusted)) as stages:
        for subject in stages:
            for rule in rule_table().values():
                if type(subject) in rule.target_types and (rule.gate == "check" or gate == "accept"):
                    findings += rule.findings(subject)
            draft = subject if isinstance(subject, Draft) else draft
    violated = {each.rule for each in findings if each.level is Level.ERROR}
    # One mistake can violate many rules: drop the findings that other findings explain.
    findings = [each for each in findings if not rule_table()[each.rule].is_explained_by(violated)]
    findings.sort(key=lambda each: (LEVELS.index(each.level), each.place.file, each.place.line))
    return CheckResult(folder, tuple(findings), draft)


def _stages(
    folder: ProposalFolder, registry: Registry, run: bool, trusted: Path | None
) -> Generator[Draft | InvalidFile, None, None]:
    """Yield a `Draft`, a `DefinedDraft` and, if `run`, an `Evaluated`; end with `InvalidFile` at an error."""
    try:
        draft = Draft(folder, folder.proposal, registry, trusted=trusted)
    except DefinitionError as error:
        yield InvalidFile(folder, PROPOSAL, error)
        return
    yield draft
    # Imported after `rule_table()`, which reports a missing numpy as a usage error.
    from opshift.proposals.evidence.evidence import registered_shape_rules

    with registered_shape_rules(draft, run) as shapes_error:
        if shapes_error is None:
            yield from _defined_stages(draft, run)
        else:
            yield InvalidFile(folder, SHAPES, shapes_error)


def _defined_stages(draft: Draft, run: bool) -> Generator[Draft | InvalidFile, None, None]:
    folder, registry = draft.folder, draft.registry
    try:
        operator = folder.operator(registry.types)
        defined = DefinedDraft(folder, draft.proposal, registry, operator, trusted=draft.trusted)
    except DefinitionError as error:
        yield InvalidFile(folder, OPERATOR, error)
        return
    yield defined
    if not run:
        return
    from opshift.proposals.evidence.evidence import Evaluated, gather_evidence, registered_adapters

    with registered_adapters(defined) as adapters_error:
        try:
            examples = folder.examples
        except DefinitionError as error:
            yield InvalidFile(folder, EXAMPLES, error)
            return
        evidence = gather_evidence(defined, examples)
        yield Evaluated(
            folder,
            draft.proposal,
            registry,
            defined.operator,
            evidence,
            adapters_error,
            trusted=draft.trusted,
        )


@dataclass(frozen=True)
class Status:
    """Status of a proposal, determined without running its code."""

    proposal: Proposal
    fingerprint: str
    valid: tuple[SignOff, ...]
    open: tuple[ProposalFinding, ...]
    """Errors that block acceptance, from the rules that run no code, and findings of `sign-off.trust`."""

    @property
    def title(self) -> str:
        """Operator and title of the proposal."""
        operator, title = self.proposal.operator, self.proposal.title
        return f"{operator.domain}.{operator.name}" + (f": {title}" if title else "")

    @property
    def state(self) -> str:
        """State from the file; `signed-off` for an open proposal with enough valid sign-offs."""
        state = self.proposal.state
        is_signed = len(self.valid) >= REQUIRED_SIGN_OFFS and state not in ("accepted", "withdrawn")
        return "signed-off" if is_signed else state

    def facts(self) -> dict[str, str]:
        """Return kind, state, author, sign-offs and fingerprint for text output."""
        invalid = len(self.proposal.sign_offs) - len(self.valid)
        names = ", ".join(each.name for each in self.valid) or "none"
        count = f"{sign_off_count(len(self.valid))}: {names}"
        return {
            "kind": self.proposal.kind,
            "state": self.state,
            "author": self.proposal.author.name,
            "sign-offs": f"{count}; {invalid} invalid" if invalid else count,
            "fingerprint": self.fingerprint,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return `facts`, with sign-offs as lists and with the open findings, for JSON output."""
        return {
            **self.facts(),
            "sign-offs": [each.model_dump() for each in self.valid],
            "open": [each.as_dict() for each in self.open],
        }


def status_of(path: Path, registry: Registry, trusted: Path | None = None) -> Status:
    """Return the status of a proposal without executing its code; see `check_proposal` for `trusted`.

    Raises:
        InvalidProposal: the folder does not contain a proposal.
        DefinitionError: `proposal.yaml` is invalid.
        UsageError: the folder does not exist, or numpy is not installed.
    """
    folder = ProposalFolder(path)
    draft = Draft(folder, folder.proposal, registry, trusted=trusted)
    checked = check_proposal(path, registry, gate="accept", run=False, trusted=trusted)
    changes = tuple(each for each in checked.findings if each.rule == "sign-off.trust")
    return Status(draft.proposal, fingerprint(folder), draft.sign_offs, (*checked.errors, *changes))
