"""What changed, and whether the version says so."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opshift.converter.comparison.rules import RULES
from opshift.converter.model_version import Rise, next_version, rise_between, unpack_version


@dataclass(frozen=True)
class Change:
    """One difference between two models.

    Attributes:
        rule: the name of its kind, a key of `opshift.converter.comparison.rules.RULES`.
        place: the input, output, domain or part of the model.
        before, after: what was there and what is; empty where there is nothing.
    """

    rule: str
    place: str
    before: str = ""
    after: str = ""

    @property
    def rise(self) -> Rise:
        """By how much it has to raise the version at least."""
        return RULES[self.rule].rise

    def as_dict(self) -> dict[str, str]:
        """Plain data, for JSON."""
        told = {"rule": self.rule, "rise": self.rise.name, "place": self.place, "why": RULES[self.rule].why}
        return {**told, "before": self.before, "after": self.after}


@dataclass(frozen=True)
class Comparison:
    """All differences between two models, the gravest first.

    Attributes:
        changes: the differences.
        old_version, new_version: the models' `model_version`, packed.
    """

    changes: tuple[Change, ...]
    old_version: int
    new_version: int

    @cached_property
    def required(self) -> Rise:
        """By how much the version has to rise at least."""
        return max((each.rise for each in self.changes), default=Rise.NONE)

    @property
    def risen(self) -> Rise | None:
        """By how much it rises; `None` if it sinks."""
        return rise_between(self.old_version, self.new_version)

    @property
    def enough(self) -> bool:
        """Whether it rises as much as it has to."""
        return self.risen is not None and self.risen >= self.required

    @property
    def lowest(self) -> str:
        """The lowest version that is enough."""
        return next_version(self.old_version, self.required)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "old_version": unpack_version(self.old_version),
            "new_version": unpack_version(self.new_version),
            "required": self.required.name,
            "risen": self.risen.name if self.risen is not None else None,
            "enough": self.enough,
            "lowest": self.lowest,
            "changes": [each.as_dict() for each in self.changes],
        }
