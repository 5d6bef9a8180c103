"""What may change in a model, and what its version then has to say.

The first nine are ONNX's (Versioning, "Signature changes"). Of names, order and shapes, and of the versions
that a model depends on, ONNX's text says nothing; there these rules go by what a caller notices.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

from opshift.converter.model_version import Rise

NONE, PATCH, MINOR, MAJOR = Rise


class Rule(NamedTuple):
    """A kind of change: the least rise that it asks for, and why."""

    name: str
    rise: Rise
    why: str


_RULES = (
    Rule("INPUT_ADDED", MAJOR, "callers do not give it, and it has no default"),
    Rule("INPUT_TYPE_CHANGED", MAJOR, "what callers give has another type"),
    Rule("OUTPUT_REMOVED", MAJOR, "callers may read it"),
    Rule("OUTPUT_TYPE_CHANGED", MAJOR, "what callers read has another type"),
    Rule("MEANING_CHANGED", MAJOR, "the same numbers stand for something else"),
    Rule("INPUT_ADDED_WITH_DEFAULT", MINOR, "callers need not give it"),
    Rule("INPUT_TYPE_WIDENED", MINOR, "the type holds all that callers gave"),
    Rule("OUTPUT_ADDED", MINOR, "callers need not read it"),
    Rule("OUTPUT_TYPE_WIDENED", MINOR, "the type holds all that callers read"),
    Rule("INPUT_REMOVED", MAJOR, "callers may give it"),
    Rule("INPUT_DEFAULT_REMOVED", MAJOR, "callers may have left it out"),
    Rule("INPUT_DEFAULT_ADDED", MINOR, "callers may leave it out"),
    Rule("INPUT_DEFAULT_CHANGED", PATCH, "callers who leave it out get other numbers"),
    Rule("INPUT_RENAMED", MAJOR, "callers name it"),
    Rule("OUTPUT_RENAMED", MAJOR, "callers name it"),
    Rule("INPUTS_REORDERED", MAJOR, "callers may go by position"),
    Rule("OUTPUTS_REORDERED", MAJOR, "callers may go by position"),
    Rule("INPUT_SHAPE_CHANGED", MAJOR, "what callers give has another shape"),
    Rule("INPUT_SHAPE_NARROWED", MAJOR, "callers may give other shapes"),
    Rule("INPUT_SHAPE_WIDENED", MINOR, "callers may give more shapes"),
    Rule("OUTPUT_SHAPE_CHANGED", MAJOR, "what callers read has another shape"),
    Rule("OUTPUT_SHAPE_WIDENED", MAJOR, "callers may read other shapes than before"),
    Rule("OUTPUT_SHAPE_NARROWED", MINOR, "callers know more of what they read"),
    Rule("DIMENSION_RENAMED", PATCH, "it is the same dimensions that are alike"),
    Rule("OPSET_RAISED", MINOR, "whoever runs it may have to be newer"),
    Rule("OPSET_LOWERED", PATCH, "whoever ran it still does"),
    Rule("IR_VERSION_RAISED", MINOR, "whoever reads it may have to be newer"),
    Rule("IR_VERSION_LOWERED", PATCH, "whoever read it still does"),
    Rule("GRAPH_CHANGED", PATCH, "the signature is the same"),
    Rule("WEIGHTS_UNKNOWN", PATCH, "they are in files of their own and may have changed"),
    Rule("METADATA_CHANGED", PATCH, "nothing that is computed depends on it"),
)
RULES = MappingProxyType({rule.name: rule for rule in _RULES})
