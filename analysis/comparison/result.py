"""Changes between two models, and the version increment that they require."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from opshift.analysis.comparison.model_version import Rise, next_version, rise_between, unpack_version


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


NONE, PATCH, MINOR, MAJOR = Rise


class Rule(NamedTuple):
    """Kind of change: the least version increment that it requires, and the reason."""

    name: str
    rise: Rise
    why: str


_RULES = (
    Rule("INPUT_ADDED", MAJOR, "callers do not provide it, and it has no default"),
    Rule("INPUT_TYPE_CHANGED", MAJOR, "callers provide the old type"),
    Rule("OUTPUT_REMOVED", MAJOR, "callers may read it"),
    Rule("OUTPUT_TYPE_CHANGED", MAJOR, "callers expect the old type"),
    Rule("MEANING_CHANGED", MAJOR, "the same numbers have a different meaning"),
    Rule("INPUT_ADDED_WITH_DEFAULT", MINOR, "callers need not provide it"),
    Rule("INPUT_TYPE_WIDENED", MINOR, "the new type holds all values of the old type"),
    Rule("OUTPUT_ADDED", MINOR, "callers need not read it"),
    Rule("OUTPUT_TYPE_WIDENED", MINOR, "the new type holds all values of the old type"),
    Rule("INPUT_REMOVED", MAJOR, "callers may provide it"),
    Rule("INPUT_DEFAULT_REMOVED", MAJOR, "callers may rely on the default"),
    Rule("INPUT_DEFAULT_ADDED", MINOR, "callers may omit it"),
    Rule("INPUT_DEFAULT_CHANGED", PATCH, "callers that omit it get different results"),
    Rule("INPUT_RENAMED", MAJOR, "callers refer to it by name"),
    Rule("OUTPUT_RENAMED", MAJOR, "callers refer to it by name"),
    Rule("INPUTS_REORDERED", MAJOR, "callers may refer to them by position"),
    Rule("OUTPUTS_REORDERED", MAJOR, "callers may refer to them by position"),
    Rule("INPUT_SHAPE_CHANGED", MAJOR, "callers provide the old shape"),
    Rule("INPUT_SHAPE_NARROWED", MAJOR, "callers may provide shapes that are no longer allowed"),
    Rule("INPUT_SHAPE_WIDENED", MINOR, "callers may provide more shapes"),
    Rule("OUTPUT_SHAPE_CHANGED", MAJOR, "callers expect the old shape"),
    Rule("OUTPUT_SHAPE_WIDENED", MAJOR, "callers may get shapes that they do not expect"),
    Rule("OUTPUT_SHAPE_NARROWED", MINOR, "callers can rely on a more specific shape"),
    Rule("DIMENSION_RENAMED", PATCH, "the same dimensions have to be equal"),
    Rule("OPSET_RAISED", MINOR, "runtimes may have to be newer"),
    Rule("OPSET_LOWERED", PATCH, "runtimes that supported the old opset still work"),
    Rule("IR_VERSION_RAISED", MINOR, "readers may have to be newer"),
    Rule("IR_VERSION_LOWERED", PATCH, "readers that supported the old IR version still work"),
    Rule("GRAPH_CHANGED", PATCH, "the signature is the same"),
    Rule("WEIGHTS_UNKNOWN", PATCH, "external data files were not compared or differ"),
    Rule("METADATA_CHANGED", PATCH, "no result depends on it"),
)

RULES = MappingProxyType({rule.name: rule for rule in _RULES})
