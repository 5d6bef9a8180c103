"""Kinds of changes of a model, and the version increment that each requires.

The first nine rules are ONNX's (Versioning, "Signature changes"). ONNX does not specify increments for names,
order, shapes, opsets and the IR version; these rules depend on the effect on callers.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

from opshift.converter.model_version import Rise

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
