"""Words of the pages for classes of changes and kinds of conversions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opshift.registry.changes.classes import ChangeClass

CHANGE_LABELS: Final[Mapping[ChangeClass, str]] = {
    ChangeClass.DOCUMENTATION: "same meaning",
    ChangeClass.WIDENING: "accepts more",
    ChangeClass.ADDS_BEHAVIOUR: "new features",
    ChangeClass.RE_ENCODES: "written differently",
    ChangeClass.CHANGES_DEFAULT: "new default",
    ChangeClass.NARROWS: "accepts less",
    ChangeClass.INCOMPATIBLE: "not compatible",
    ChangeClass.REMOVAL: "deprecated",
}

METHOD_LABELS: Final[Mapping[str, str]] = {
    "derived": "unchanged",
    "compatible": "unchanged",
    "declared": "rewritten",
    "adapter": "rewritten",
    "refused": "no equivalent",
}
"""Labels of the keys of `history.METHODS`."""

CHANGE_SUBJECTS: Final[Mapping[str, str]] = {
    "attribute absent": "meaning if absent",
    "attribute default": "default",
    "attribute type": "type",
    "axes": "range of axes",
    "body": "function body",
    "bridge": "types in which runtimes may compute",
    "has function": "function body",
    "shape": "rule for shapes",
    "output type source": "source of the type",
}
"""Names of kinds of changes that differ from those of `Change.kind`."""


def change_subject(kind: str) -> str:
    """Return what a change of a kind is about, without the words that its subject and values state."""
    text = kind.replace("_", " ")
    if text in CHANGE_SUBJECTS:
        return CHANGE_SUBJECTS[text]
    return text.partition(" ")[2].replace("added", "").replace("removed", "").replace("option", "").strip()
