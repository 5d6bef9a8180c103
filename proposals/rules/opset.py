"""Rules for the opset of a proposal and for published versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from opshift.checker.findings import Level
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.content.folder import OPERATOR
from opshift.proposals.content.staged_registry import next_opset, released_opset
from opshift.proposals.rules.rule_table import ProposalProblem, rule
from opshift.registry.models import OperatorVersion

VERSIONING = "ONNX, Versioning: operator sets"

PREVIEW = "ONNX, Experimental and preview operators"


@rule("opset.released", Level.ERROR, source=VERSIONING, remedy="use the number of the next opset")
def check_opset_released(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """A proposal does not change a released opset.

    Runtimes that implement a released opset have to remain complete.
    """
    released = released_opset(draft.registry, draft.operator.domain)
    is_known = draft.published is not None and draft.opset in _since_versions(draft.published.versions)
    if draft.opset <= released and not is_known and not _is_preview(draft):
        yield ProposalProblem(
            f"opset {draft.opset} of {draft.operator.domain} is already released",
            OPERATOR,
            _opset_keys(draft),
        )


@rule("opset.next", Level.ERROR, source=VERSIONING, remedy="use the number of the next opset")
def check_opset_next(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """A proposal enters the next opset.

    Opsets are numbered without gaps.
    """
    expected = next_opset(draft.registry, draft.operator.domain)
    if draft.opset > expected and not _is_preview(draft):
        yield ProposalProblem(
            f"the proposal enters opset {draft.opset}, but the next opset is {expected}",
            OPERATOR,
            _opset_keys(draft),
        )


@rule(
    "opset.published",
    Level.ERROR,
    source=VERSIONING,
    remedy="restore the published version, and add a new one",
)
def check_opset_published(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """Published versions are neither changed nor omitted.

    Existing models rely on them. Every change needs a new version.
    """
    if draft.published is None or draft.adds_operator:
        return
    proposed = {each.since_version: (i, each) for i, each in enumerate(draft.operator.versions)}
    for old in draft.published.versions:
        if old.since_version not in proposed:
            yield ProposalProblem(
                f"the published version {old.since_version} is missing", OPERATOR, ("versions",)
            )
            continue
        position, new = proposed[old.since_version]
        if _immutable_part(old) != _immutable_part(new):
            keys = ("versions", position)
            yield ProposalProblem(
                f"the published version {old.since_version} is changed: {_changed_fields(old, new)}",
                OPERATOR,
                keys,
            )


@rule("opset.version", Level.ERROR, source=VERSIONING, remedy="append the new version at the end of the file")
def check_opset_version(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """An update or deprecation adds exactly one version; a removal adds none."""
    if draft.published is None or draft.adds_operator:
        return
    added = len(draft.operator.versions) - len(draft.published.versions)
    expected = 0 if draft.proposal.kind == "removal" else 1
    if added != expected:
        yield ProposalProblem(f"expected {expected} new versions, got {added}", OPERATOR, ("versions",))


@rule("preview.version", Level.ERROR, source=PREVIEW, remedy="use version 1 and status EXPERIMENTAL")
def check_preview_version(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """Operators of preview domains are experimental and have version 1; all others are stable.

    Experimental operators may change or disappear at any time, so their versions carry no guarantee.
    """
    is_preview = _is_preview(draft)
    is_experimental = draft.version.status == "EXPERIMENTAL"
    if is_preview != is_experimental:
        kind = "experimental" if is_experimental else "stable"
        yield ProposalProblem(
            f"the operator is {kind}, in the domain {draft.operator.domain}", OPERATOR, _opset_keys(draft)
        )
    if is_preview and draft.version.since_version != 1:
        yield ProposalProblem(
            f"the operator has version {draft.version.since_version}, not 1", OPERATOR, _opset_keys(draft)
        )


def _is_preview(draft: DefinedDraft) -> bool:
    return "preview" in draft.operator.domain.split(".")


def _since_versions(versions: tuple[OperatorVersion, ...]) -> set[int]:
    return {each.since_version for each in versions}


def _immutable_part(version: OperatorVersion) -> OperatorVersion:
    """Return the version without its removal, the only part of a published version that may be added."""
    return replace(version, removal=None)


def _changed_fields(old: OperatorVersion, new: OperatorVersion) -> str:
    names = (
        field.name
        for field in fields(old)
        if getattr(_immutable_part(old), field.name) != getattr(_immutable_part(new), field.name)
    )
    return ", ".join(names)


def _opset_keys(draft: DefinedDraft) -> tuple[int | str, ...]:
    removal = ("removal", "removed_in") if draft.version.removal else ("since_version",)
    return ("versions", draft.position, *removal)
