"""Changes that the definitions do not show and the step between them declares."""

from __future__ import annotations

from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.rule import ChangeRule, Versions, of_kind
from opshift.registry.diff import Change
from opshift.registry.steps import Refuse


def _has_no_way_up(change: Change, versions: Versions) -> bool:
    return change.kind == "meaning" and isinstance(versions.answer("up"), Refuse)


MEANING_RULES = (
    ChangeRule(
        "meaning-changed",
        ChangeClass.INCOMPATIBLE,
        "The same node means something else, and no way leads from one version to the other.",
        lambda change, versions: (
            _has_no_way_up(change, versions) and isinstance(versions.answer("down"), Refuse)
        ),
    ),
    ChangeRule(
        "behaviour-removed",
        ChangeClass.NARROWS,
        "Some older nodes mean what the new version has no form for.",
        _has_no_way_up,
    ),
    ChangeRule(
        "meaning-re-encoded",
        ChangeClass.RE_ENCODES,
        "The same node means something else, and the step says the old meaning in the new version.",
        of_kind("meaning"),
    ),
    ChangeRule(
        "behaviour-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "Nodes of the new version may mean what those of the old one cannot, in the same words.",
        of_kind("behaviour"),
    ),
    ChangeRule(
        "text-clarified",
        ChangeClass.DOCUMENTATION,
        "A new version was published whose nodes mean what they meant.",
        of_kind("text"),
    ),
)
