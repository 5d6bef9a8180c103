"""Changes between two models, by rule, and the version increments that they require."""

from dataclasses import dataclass
from typing import NamedTuple

from opshift.model.model_version import VersionBump


@dataclass(frozen=True)
class ModelChange:
    """Change of a part of a model, such as an input or a domain; `before` or `after` may be empty."""

    rule: str
    """Name of the rule, a key of `RULES`."""
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


NONE, PATCH, MINOR, MAJOR = VersionBump


class ComparisonRule(NamedTuple):
    """Rule for one kind of change: the least version increment that it requires, and the reason."""

    rise: VersionBump
    why: str


RULES = {
    "INPUT_ADDED": ComparisonRule(MAJOR, "callers do not provide it, and it has no default"),
    "INPUT_TYPE_CHANGED": ComparisonRule(MAJOR, "callers provide the old type"),
    "OUTPUT_REMOVED": ComparisonRule(MAJOR, "callers may read it"),
    "OUTPUT_TYPE_CHANGED": ComparisonRule(MAJOR, "callers expect the old type"),
    "MEANING_CHANGED": ComparisonRule(MAJOR, "the same numbers have a different meaning"),
    "OPERATOR_MEANING_CHANGED": ComparisonRule(
        MAJOR, "the node is the same, but its operator version computes different results"
    ),
    "INPUT_ADDED_WITH_DEFAULT": ComparisonRule(MINOR, "callers need not provide it"),
    "INPUT_TYPE_WIDENED": ComparisonRule(MINOR, "the new type holds all values of the old type"),
    "OUTPUT_ADDED": ComparisonRule(MINOR, "callers need not read it"),
    "OUTPUT_TYPE_WIDENED": ComparisonRule(MINOR, "the new type holds all values of the old type"),
    "INPUT_REMOVED": ComparisonRule(MAJOR, "callers may provide it"),
    "INPUT_DEFAULT_REMOVED": ComparisonRule(MAJOR, "callers may rely on the default"),
    "INPUT_DEFAULT_ADDED": ComparisonRule(MINOR, "callers may omit it"),
    "INPUT_DEFAULT_CHANGED": ComparisonRule(PATCH, "callers that omit it get different results"),
    "INPUT_RENAMED": ComparisonRule(MAJOR, "callers refer to it by name"),
    "OUTPUT_RENAMED": ComparisonRule(MAJOR, "callers refer to it by name"),
    "INPUTS_REORDERED": ComparisonRule(MAJOR, "callers may refer to them by position"),
    "OUTPUTS_REORDERED": ComparisonRule(MAJOR, "callers may refer to them by position"),
    "INPUT_SHAPE_CHANGED": ComparisonRule(MAJOR, "callers provide the old shape"),
    "INPUT_SHAPE_NARROWED": ComparisonRule(MAJOR, "callers may provide shapes that are no longer allowed"),
    "INPUT_SHAPE_WIDENED": ComparisonRule(MINOR, "callers may provide more shapes"),
    "OUTPUT_SHAPE_CHANGED": ComparisonRule(MAJOR, "callers expect the old shape"),
    "OUTPUT_SHAPE_WIDENED": ComparisonRule(MAJOR, "callers may get shapes that they do not expect"),
    "OUTPUT_SHAPE_NARROWED": ComparisonRule(MINOR, "callers can rely on a more specific shape"),
    "DIMENSION_RENAMED": ComparisonRule(PATCH, "the same dimensions have to be equal"),
    "OPSET_RAISED": ComparisonRule(MINOR, "runtimes may have to be newer"),
    "OPSET_LOWERED": ComparisonRule(PATCH, "runtimes that supported the old opset still work"),
    "IR_VERSION_RAISED": ComparisonRule(MINOR, "readers may have to be newer"),
    "IR_VERSION_LOWERED": ComparisonRule(PATCH, "readers that supported the old IR version still work"),
    "OPERATORS_CHANGED": ComparisonRule(
        MAJOR,
        "outputs may mean something else; MINOR with --same-meaning, or if --verify finds equal outputs",
    ),
    "OPERATORS_REPLACED": ComparisonRule(MINOR, "outputs mean the same, as the caller states or a run shows"),
    "GRAPH_CHANGED": ComparisonRule(PATCH, "signature, operators and connections are the same"),
    "WEIGHTS_UNKNOWN": ComparisonRule(PATCH, "external data files were not compared or differ"),
    "METADATA_CHANGED": ComparisonRule(PATCH, "no result depends on it"),
}
