"""In which opset a proposal may stand, and what of a file is settled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from opshift.proposals.draft import Defined
from opshift.proposals.findings import Level
from opshift.proposals.folder import OPERATOR
from opshift.proposals.opsets import next_opset, released_opset
from opshift.proposals.rules.table import Flaw, rule
from opshift.registry.models import OperatorVersion

VERSIONING = "ONNX, Versioning: operator sets"
PREVIEW = "ONNX, Experimental and preview operators"


@rule("opset.released", Level.ERROR, source=VERSIONING, remedy="give it the number of the next opset")
def opset_is_not_released(draft: Defined) -> Iterator[Flaw]:
    """Nothing enters an opset that is released.

    Whoever implements a released opset has implemented all of it.
    """
    released = released_opset(draft.registry, draft.operator.domain)
    is_known = draft.published is not None and draft.opset in _ages(draft.published.versions)
    if draft.opset <= released and not is_known and not _is_preview(draft):
        yield Flaw(f"opset {draft.opset} of {draft.operator.domain} is released", OPERATOR, _keys(draft))


@rule("opset.next", Level.ERROR, source=VERSIONING, remedy="give it the number of the next opset")
def opset_is_the_next(draft: Defined) -> Iterator[Flaw]:
    """What is proposed enters the next opset.

    Opsets are numbered without gaps.
    """
    wanted = next_opset(draft.registry, draft.operator.domain)
    if draft.opset > wanted and not _is_preview(draft):
        yield Flaw(f"it enters opset {draft.opset}; the next is {wanted}", OPERATOR, _keys(draft))


@rule("opset.published", Level.ERROR, source=VERSIONING, remedy="leave it as it is, and add a version")
def published_versions_stay(draft: Defined) -> Iterator[Flaw]:
    """A version that is published is not changed, and none is left out.

    Models were made with it; what it means must not change under them. What is to change takes a version
    of its own.
    """
    if draft.published is None or draft.introduces:
        return
    proposed = {each.since_version: (i, each) for i, each in enumerate(draft.operator.versions)}
    for old in draft.published.versions:
        if old.since_version not in proposed:
            yield Flaw(f"version {old.since_version} is left out", OPERATOR, ("versions",))
            continue
        position, new = proposed[old.since_version]
        if _settled(old) != _settled(new):
            keys = ("versions", position)
            yield Flaw(
                f"version {old.since_version}, which is published, is changed: {_what(old, new)}",
                OPERATOR,
                keys,
            )


@rule("opset.version", Level.ERROR, source=VERSIONING, remedy="append the new version at the end of the file")
def an_update_adds_one_version(draft: Defined) -> Iterator[Flaw]:
    """An update or deprecation adds one version; a removal adds none."""
    if draft.published is None or draft.introduces:
        return
    added = len(draft.operator.versions) - len(draft.published.versions)
    wanted = 0 if draft.proposal.kind == "removal" else 1
    if added != wanted:
        yield Flaw(f"it adds {added} versions, not {wanted}", OPERATOR, ("versions",))


@rule("preview.version", Level.ERROR, source=PREVIEW, remedy="make it version 1, with status EXPERIMENTAL")
def preview_operators_are_experimental(draft: Defined) -> Iterator[Flaw]:
    """In a preview domain everything is experimental, and of version 1; elsewhere nothing new is.

    It may change or go at any time, so nothing about its versions can be relied on.
    """
    is_preview = _is_preview(draft)
    is_experimental = draft.version.status == "EXPERIMENTAL"
    if is_preview != is_experimental:
        kind = "experimental" if is_experimental else "stable"
        yield Flaw(f"it is {kind}, in {draft.operator.domain}", OPERATOR, _keys(draft))
    if is_preview and draft.version.since_version != 1:
        yield Flaw(f"it is of version {draft.version.since_version}", OPERATOR, _keys(draft))


def _is_preview(draft: Defined) -> bool:
    return "preview" in draft.operator.domain.split(".")


def _ages(versions: tuple[OperatorVersion, ...]) -> set[int]:
    return {each.since_version for each in versions}


def _settled(version: OperatorVersion) -> OperatorVersion:
    """What is settled: all but that it may be removed."""
    return replace(version, removal=None)


def _what(old: OperatorVersion, new: OperatorVersion) -> str:
    names = (
        field.name
        for field in fields(old)
        if getattr(_settled(old), field.name) != getattr(_settled(new), field.name)
    )
    return ", ".join(names)


def _keys(draft: Defined) -> tuple[int | str, ...]:
    removal = ("removal", "removed_in") if draft.version.removal else ("since_version",)
    return ("versions", draft.position, *removal)
