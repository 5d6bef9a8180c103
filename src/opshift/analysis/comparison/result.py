"""Changes between two models, and the version increment that they require."""

from dataclasses import dataclass, replace
from functools import cached_property

from opshift.converter.model_changes import ModelChange
from opshift.model import model_version
from opshift.model.model_version import VersionBump, unpack_version
from opshift.model.plain_data import Json


@dataclass(frozen=True)
class Comparison:
    """All changes between two models, the most severe first.

    Attributes:
        changes: the changes.
        old_version, new_version: packed `model_version` of each model.
    """

    changes: tuple[ModelChange, ...]
    old_version: int
    new_version: int

    @cached_property
    def required(self) -> VersionBump:
        """Least version increment that all changes allow."""
        return max((each.rise for each in self.changes), default=VersionBump.NONE)

    @property
    def risen(self) -> VersionBump | None:
        """Version increment between the two models; `None` if the version decreases."""
        return model_version.version_bump_between(self.old_version, self.new_version)

    @property
    def enough(self) -> bool:
        """Whether the increment is at least the required one."""
        return self.risen is not None and self.risen >= self.required

    def with_same_meaning(self) -> "Comparison":
        """Return the comparison if outputs mean the same: OPERATORS_CHANGED becomes OPERATORS_REPLACED."""
        changes = (
            replace(each, rule="OPERATORS_REPLACED") if each.rule == "OPERATORS_CHANGED" else each
            for each in self.changes
        )
        return replace(self, changes=tuple(sorted(changes, key=lambda change: -change.rise)))

    @property
    def lowest(self) -> str:
        """Lowest version that has the required increment."""
        return model_version.next_version(self.old_version, self.required)

    def as_dict(self) -> dict[str, Json]:
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
