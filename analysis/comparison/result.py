"""Changes between two models, and the version increment that they require."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from opshift.analysis.comparison.model_version import (
    VersionBump,
    next_version,
    unpack_version,
    version_bump_between,
)
from opshift.model.plain_data import Json


@dataclass(frozen=True)
class ModelChange:
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
    def rise(self) -> VersionBump:
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

    changes: tuple[ModelChange, ...]
    old_version: int
    new_version: int

    @cached_property
    def required(self) -> VersionBump:
        """Least version increment that all changes require."""
        return max((each.rise for each in self.changes), default=VersionBump.NONE)

    @property
    def risen(self) -> VersionBump | None:
        """Actual version increment; `None` if the version decreases."""
        return version_bump_between(self.old_version, self.new_version)

    @property
    def enough(self) -> bool:
        """Whether the actual increment is at least the required one."""
        return self.risen is not None and self.risen >= self.required

    @property
    def lowest(self) -> str:
        """Lowest version with the required increment."""
        return next_version(self.old_version, self.required)

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


NONE, PATCH, MINOR, MAJOR = VersionBump


class ComparisonRule(NamedTuple):
    """Kind of change: the least version increment that it requires, and the reason."""

    name: str
    rise: VersionBump
    why: str


_RULES = (
    ComparisonRule("INPUT_ADDED", MAJOR, "callers do not provide it, and it has no default"),
    ComparisonRule("INPUT_TYPE_CHANGED", MAJOR, "callers provide the old type"),
    ComparisonRule("OUTPUT_REMOVED", MAJOR, "callers may read it"),
    ComparisonRule("OUTPUT_TYPE_CHANGED", MAJOR, "callers expect the old type"),
    ComparisonRule("MEANING_CHANGED", MAJOR, "the same numbers have a different meaning"),
    ComparisonRule("INPUT_ADDED_WITH_DEFAULT", MINOR, "callers need not provide it"),
    ComparisonRule("INPUT_TYPE_WIDENED", MINOR, "the new type holds all values of the old type"),
    ComparisonRule("OUTPUT_ADDED", MINOR, "callers need not read it"),
    ComparisonRule("OUTPUT_TYPE_WIDENED", MINOR, "the new type holds all values of the old type"),
    ComparisonRule("INPUT_REMOVED", MAJOR, "callers may provide it"),
    ComparisonRule("INPUT_DEFAULT_REMOVED", MAJOR, "callers may rely on the default"),
    ComparisonRule("INPUT_DEFAULT_ADDED", MINOR, "callers may omit it"),
    ComparisonRule("INPUT_DEFAULT_CHANGED", PATCH, "callers that omit it get different results"),
    ComparisonRule("INPUT_RENAMED", MAJOR, "callers refer to it by name"),
    ComparisonRule("OUTPUT_RENAMED", MAJOR, "callers refer to it by name"),
    ComparisonRule("INPUTS_REORDERED", MAJOR, "callers may refer to them by position"),
    ComparisonRule("OUTPUTS_REORDERED", MAJOR, "callers may refer to them by position"),
    ComparisonRule("INPUT_SHAPE_CHANGED", MAJOR, "callers provide the old shape"),
    ComparisonRule("INPUT_SHAPE_NARROWED", MAJOR, "callers may provide shapes that are no longer allowed"),
    ComparisonRule("INPUT_SHAPE_WIDENED", MINOR, "callers may provide more shapes"),
    ComparisonRule("OUTPUT_SHAPE_CHANGED", MAJOR, "callers expect the old shape"),
    ComparisonRule("OUTPUT_SHAPE_WIDENED", MAJOR, "callers may get shapes that they do not expect"),
    ComparisonRule("OUTPUT_SHAPE_NARROWED", MINOR, "callers can rely on a more specific shape"),
    ComparisonRule("DIMENSION_RENAMED", PATCH, "the same dimensions have to be equal"),
    ComparisonRule("OPSET_RAISED", MINOR, "runtimes may have to be newer"),
    ComparisonRule("OPSET_LOWERED", PATCH, "runtimes that supported the old opset still work"),
    ComparisonRule("IR_VERSION_RAISED", MINOR, "readers may have to be newer"),
    ComparisonRule("IR_VERSION_LOWERED", PATCH, "readers that supported the old IR version still work"),
    ComparisonRule("GRAPH_CHANGED", PATCH, "the signature is the same"),
    ComparisonRule("WEIGHTS_UNKNOWN", PATCH, "external data files were not compared or differ"),
    ComparisonRule("METADATA_CHANGED", PATCH, "no result depends on it"),
)

RULES = MappingProxyType({rule.name: rule for rule in _RULES})
