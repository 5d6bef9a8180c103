"""Constraints of the JSON Schema of operator files that pydantic does not generate: lint rules as schemas."""

from __future__ import annotations

from typing import Any, get_args

from opshift.model.operator_ids import PATH_NAME
from opshift.registry.lint.parameters import DOMAIN, IDENTIFIER
from opshift.registry.lint.rule_table import rule_table
from opshift.registry.models import AttributeTypeName
from opshift.registry.type_sets import TYPE

Schema = dict[str, Any]

_SCALARS = {"INT": "integer", "FLOAT": "number", "STRING": "string"}

_NULL: Schema = {"type": "null"}

_NAMES: Schema = {"pattern": f"^(?:{IDENTIFIER.pattern})$"}


def add_constraints(schema: Schema, definitions: dict[str, Schema]) -> None:
    """Add constraints to the schema of a file and to the schemas of its parts."""
    top = schema["properties"]
    top["domain"]["pattern"] = f"^(?:{DOMAIN.pattern})$"
    top["name"]["pattern"] = f"^(?:{PATH_NAME.pattern})$"
    version = top["versions"]["items"]
    top["versions"]["prefixItems"] = [{**version, "not": {"required": ["step"]}}]
    top["versions"]["items"] = {**version, "not": {"required": ["before"]}}
    _constrain_version(definitions["OperatorVersion"]["properties"])
    _constrain_attribute(definitions["Attribute"])
    _constrain_parameter(definitions["Parameter"])


def _constrain_version(fields: Schema) -> None:
    fields["attributes"]["propertyNames"] = fields["type_constraints"]["propertyNames"] = _NAMES
    name, listed = fields["type_constraints"]["additionalProperties"]["anyOf"]
    name["pattern"] = types_pattern(f"[a-z]\\w*|{TYPE.pattern}")
    listed["minItems"] = 1
    fields["known_mistakes"]["items"] = {"enum": list(rule_table())}


def types_pattern(pattern: str) -> str:
    """Return the pattern of types that may be nested in sequences and optional values."""
    return rf"^(?:(?:seq|optional)\()*(?:{pattern})\)*$"


def _constrain_parameter(parameter: Schema) -> None:
    fields = parameter["properties"]
    fields["name"]["pattern"] = _NAMES["pattern"]
    fields["type"]["pattern"] = types_pattern(f"{IDENTIFIER.pattern}|{TYPE.pattern}")
    fields["min_arity"]["minimum"] = 0
    single = {"properties": {"min_arity": {"const": 1}, "homogeneous": {"const": True}}}
    parameter["if"] = {"properties": {"option": {"const": "variadic"}}, "required": ["option"]}
    parameter["else"] = single


def _constrain_attribute(attribute: Schema) -> None:
    listed = attribute["properties"]["values"]["anyOf"][0]
    listed |= {"minItems": 1, "uniqueItems": True}
    kinds = []
    for kind in get_args(AttributeTypeName):
        scalar = _SCALARS.get(kind.removesuffix("S"))
        then: Schema = {"properties": {"default": _NULL, "values": _NULL}}
        if scalar is not None:
            elements = {"type": ["array", "null"], "items": {"type": scalar}}
            default = elements if kind.endswith("S") else {"type": [scalar, "null"]}
            then = {"properties": {"default": default, "values": elements}}
        if scalar not in ("integer", "number"):
            then["properties"] |= {"minimum": _NULL, "maximum": _NULL}
        kinds.append({"if": {"properties": {"type": {"const": kind}}, "required": ["type"]}, "then": then})
    required = {"properties": {"required": {"const": True}}, "required": ["required"]}
    attribute["allOf"] = [*kinds, {"if": required, "then": {"properties": {"default": _NULL}}}]
