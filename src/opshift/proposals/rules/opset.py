"""Rules for the opset of a proposal and for published versions."""

from dataclasses import fields, replace

from opshift.checker.findings import ERROR
from opshift.model.message_text import count_text
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.content.findings import ProposalProblem
from opshift.proposals.content.folder import OPERATOR, PROPOSAL
from opshift.proposals.content.staged_registry import (
    UNRELEASED_REMEDY,
    is_released,
    next_opset,
    released_opset,
)
from opshift.proposals.rules.rule_table import PREVIEW, Problems, rule
from opshift.registry.attribute_values import is_same_value
from opshift.registry.models import OperatorVersion

VERSIONING = "ONNX, Versioning: operator sets"


@rule("opset.released", ERROR, VERSIONING, "use the number of the next opset")
def check_opset_released(draft: DefinedDraft) -> Problems:
    """A proposal does not change a released opset.

    Runtimes that implement a released opset have to remain complete.
    """
    published = draft.published.versions if draft.published else ()
    is_known = any(each.since_version == draft.opset for each in published)
    newest = released_opset(draft.registry, draft.operator.domain)
    if draft.opset <= newest and not is_known and not draft.is_preview:
        yield _at_opset(draft, f"opset {draft.opset} of {draft.operator.domain} is already released")


@rule("opset.next", ERROR, VERSIONING, "use the number of the next opset")
def check_opset_next(draft: DefinedDraft) -> Problems:
    """A proposal enters the next opset.

    Opsets are numbered without gaps.
    """
    expected = next_opset(draft.registry, draft.operator.domain)
    if draft.opset > expected and not draft.is_preview:
        reason = f"the proposal enters opset {draft.opset}, but the next opset is {expected}"
        yield _at_opset(draft, reason)


@rule("opset.published", ERROR, VERSIONING, "restore the published version, and add a new one")
def check_opset_published(draft: DefinedDraft) -> Problems:
    """Released versions are neither changed nor omitted.

    Existing models rely on them. Every change needs a new version. Unreleased versions are edited instead.
    """
    if draft.published is None or draft.adds_operator:
        return
    positions = {each.since_version: position for position, each in enumerate(draft.operator.versions)}
    changed: dict[str, list[int]] = {}
    for old in (each for each in draft.published.versions if is_released(draft.registry, each)):
        position = positions.get(old.since_version)
        if position is None:
            changed.setdefault("missing", []).append(old.since_version)
        elif names := changed_fields(old, draft.operator.versions[position]):
            changed.setdefault(f"changed {', '.join(names)}", []).append(old.since_version)
    for problem, versions in changed.items():
        # A changed key at the top of the file affects several versions: report the place of the list
        # `versions`.
        keys = () if problem == "missing" or len(versions) > 1 else (positions[versions[0]],)
        numbers = ", ".join(map(str, versions))
        yield draft.at_definition(f"published version {numbers}: {problem}", "versions", *keys)


@rule("opset.version", ERROR, VERSIONING, "append the new version at the end of the file")
def check_opset_version(draft: DefinedDraft) -> Problems:
    """An update adds one version, or edits an unreleased one; a deprecation adds one, and a removal none."""
    if draft.published is None or draft.adds_operator:
        return
    added = len(draft.operator.versions) - len(draft.published.versions)
    last, kind = draft.published.versions[-1], draft.proposal.kind
    is_open = not is_released(draft.registry, last)
    expected = 0 if kind == "removal" or is_open else 1
    if is_open and kind != "update":
        reason = f"{last.id} is not released, so there is no need for a {kind}"
        yield ProposalProblem(reason, draft.folder.locate(PROPOSAL, "kind"), UNRELEASED_REMEDY)
    elif added != expected:
        remedy = f"edit {last.id}, which is not released" if is_open else ""
        reason = f"expected {count_text(expected, 'new version')}, got {added}"
        yield ProposalProblem(reason, draft.folder.locate(OPERATOR, "versions"), remedy)


@rule("preview.version", ERROR, PREVIEW, "use version 1 and status EXPERIMENTAL")
def check_preview_version(draft: DefinedDraft) -> Problems:
    """Operators of preview domains are experimental and have version 1; all others are stable.

    Experimental operators may change or disappear at any time, so their versions carry no guarantee.
    """
    status, since = draft.version.status, draft.version.since_version
    if draft.is_preview != (status == "EXPERIMENTAL") or (draft.is_preview and since != 1):
        reason = f"version {since} has the status {status}, in the domain {draft.operator.domain}"
        yield _at_opset(draft, reason)


def changed_fields(old: OperatorVersion, new: OperatorVersion) -> list[str]:
    """Return the names of changed fields, except texts and `removal`, which a published version may get."""
    new = replace(new, removal=old.removal)
    compared = (each.name for each in fields(old) if each.compare)
    return [name for name in compared if not is_same_value(getattr(old, name), getattr(new, name))]


def _at_opset(draft: DefinedDraft, reason: str) -> ProposalProblem:
    removal = ("removal", "removed_in") if draft.version.removal else ("since_version",)
    return draft.at_version(reason, *removal)
