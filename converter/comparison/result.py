"""Changes between two models, and the version increment that they require."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opshift.converter.comparison.rules import RULES
from opshift.converter.model_version import Rise, next_version, rise_between, unpack_version


@dataclass(frozen=True)
class Change:
    """Change between two models.

    Attributes:
        rule: name of the rule, a key of `RULES`.
        place: the input, output, domain or part of the model.
        before, after: the old and the new state; empty if absent.
    """

    rule: str
    place: str
    before: str = ""
    after: str = ""

    @property
    def rise(self) -> Rise:
        """Least version increment that the change requires."""
        return RULES[self.rule].rise

    def as_dict(self) -> dict[str, str]:
        """Return plain data for JSON."""
        text = {"rule": self.rule, "rise": self.rise.name, "place": self.place, "why": RULES[self.rule].why}
        return {**text, "before": self.before, "after": self.after}


@dataclass(frozen=True)
class Comparison:
    """All changes between two models, the most severe first.

    Attributes:
        changes: the changes.
        old_version, new_version: packed `model_version` of each model.
    """

    changes: tuple[Change, ...]
    old_version: int
    new_version: int

    @cached_property
    def required(self) -> Rise:
        """Least version increment that all changes require."""
        return max((each.rise for each in self.changes), default=Rise.NONE)

    @property
    def risen(self) -> Rise | None:
        """Actual version increment; `None` if the version decreases."""
        return rise_between(self.old_version, self.new_version)

    @property
    def enough(self) -> bool:
        """Whether the actual increment is at least the required one."""
        return self.risen is not None and self.risen >= self.required

    @property
    def lowest(self) -> str:
        """Lowest version with the required increment."""
        return next_version(self.old_version, self.required)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "old_version": unpack_version(self.old_version),
            "new_version": unpack_version(self.new_version),
            "required": self.required.name,
            "risen": self.risen.name if self.risen is not None else None,
            "enough": self.enough,
            "lowest": self.lowest,
            "changes": [each.as_dict() for each in self.changes],
        }
