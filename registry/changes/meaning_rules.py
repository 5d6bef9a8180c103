"""Rules for changes that the definitions do not show but their step declares."""

from __future__ import annotations

from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.rule import ChangeRule, Versions, of_kind
from opshift.registry.diff import Change
from opshift.registry.steps import Refuse


def _is_upgrade_refused(change: Change, versions: Versions) -> bool:
    return change.kind == "meaning" and isinstance(versions.answer("up"), Refuse)


MEANING_RULES = (
    ChangeRule(
        "meaning-changed",
        ChangeClass.INCOMPATIBLE,
        "The meaning of a node changed, and nodes cannot be converted in either direction.",
        lambda change, versions: (
            _is_upgrade_refused(change, versions) and isinstance(versions.answer("down"), Refuse)
        ),
    ),
    ChangeRule(
        "behaviour-removed",
        ChangeClass.NARROWS,
        "The new version cannot express the meaning of some older nodes.",
        _is_upgrade_refused,
    ),
    ChangeRule(
        "meaning-re-encoded",
        ChangeClass.RE_ENCODES,
        "The meaning of a node changed, and the step expresses the old meaning in the new version.",
        of_kind("meaning"),
    ),
    ChangeRule(
        "behaviour-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "The same signature allows nodes with a meaning that the old version cannot express.",
        of_kind("behaviour"),
    ),
    ChangeRule(
        "text-clarified",
        ChangeClass.DOCUMENTATION,
        "A new version was published, and its nodes keep their meaning.",
        of_kind("text"),
    ),
)
