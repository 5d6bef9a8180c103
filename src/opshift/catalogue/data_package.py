"""All operator definitions as one JSON file for tools in any language, with a JSON Schema.

The schema is generated from the data types of the registry.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from opshift.catalogue.history import METHODS, HistoryEntry, history_of
from opshift.model.plain_data import Json, json_values
from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.classify import classify
from opshift.registry.editor_schema import DRAFT, Untitled, add_texts
from opshift.registry.models import OperatorVersion
from opshift.registry.record import to_plain_data, type_adapter
from opshift.registry.registry import Registry
from opshift.registry.releases import Consumer, Release

Schema = dict[str, Any]

FORMAT: Final = "1.0"
"""Version of the format: removed or changed keys raise the first number, new keys the second number."""

OMITTED: Final = {
    "OperatorVersion": ("step", "before", "known_mistakes", "equivalents"),
    "Removal": ("up",),
}
"""Fields, by class, that the data omits: only conversions read them; `history` describes the steps."""

_TEXT: Final[Schema] = {"type": "string"}

_NUMBER: Final[Schema] = {"type": "integer"}


def data_schema() -> Schema:
    """Return the JSON Schema of `registry_data`."""
    kinds = (OperatorVersion, Release, Consumer)
    definitions: dict[str, Schema] = {}
    for kind in kinds:
        schema = type_adapter(kind).json_schema(schema_generator=Untitled)
        definitions |= {**schema.pop("$defs", {}), kind.__name__: schema}
    add_texts(definitions)
    for name, omitted in OMITTED.items():
        for field in omitted:
            del definitions[name]["properties"][field]
    definitions["OperatorVersion"]["properties"] |= {
        "operator": {**_TEXT, "description": "The identity, such as `ai.onnx.Softmax:13`."},
        "has_function": {"type": "boolean", "description": "Whether it has a function body."},
        "history": _reference_schema("History"),
        "changes": {"type": "array", "items": _reference_schema("Change")},
    }
    definitions |= {
        "History": _history_schema(),
        "Conversion": _conversion_schema(),
        "Change": _change_schema(),
    }
    for each in definitions.values():
        each.pop("title", None)
        each["required"] = list(each["properties"])
    release = {"anyOf": [_reference_schema("Release"), _reference_schema("Consumer")]}
    versions = {"type": "array", "minItems": 1, "items": _reference_schema("OperatorVersion")}
    top = _object_schema(
        "Definitions of operators, and the releases that support them.",
        {
            "$schema": _TEXT,
            "format": {**_TEXT, "pattern": rf"^{FORMAT.partition('.')[0]}\.\d+$"},
            "opshift": {**_TEXT, "description": "The version of opshift that wrote the data."},
            "releases": _mapping_schema("Releases by product and version.", _mapping_schema("", release)),
            "opsets": _mapping_schema("The newest opset of each domain.", _NUMBER),
            "operators": _mapping_schema(
                "Versions by domain and name, oldest first.", _mapping_schema("", versions)
            ),
        },
    )
    used: dict[str, Schema] = {}
    _add_used(top, definitions, used)
    return {"$schema": DRAFT, **top, "$defs": dict(sorted(used.items()))}


def _history_schema() -> Schema:
    conversion = {"anyOf": [_reference_schema("Conversion"), {"type": "null"}]}
    return _object_schema(
        "Changes from the previous version, and how nodes are converted.",
        {
            "operator": _TEXT,
            "since_version": _NUMBER,
            "status": _TEXT,
            "change": {**_TEXT, "description": "The change in words; empty for the first version."},
            "differences": {"type": "array", "items": _TEXT},
            "up": {**conversion, "description": "Conversion from the previous version to this one."},
            "down": {**conversion, "description": "Conversion from this version to the previous one."},
            "deprecation": {"anyOf": [_reference_schema("Deprecation"), {"type": "null"}]},
            "removal": {"anyOf": [_reference_schema("Removal"), {"type": "null"}]},
            "leaving": {**conversion, "description": "Conversion to the opset that removes the operator."},
            "arriving": {**conversion, "description": "Conversion to the opset before the first version."},
        },
    )


def _conversion_schema() -> Schema:
    methods = [{"const": name, "description": meaning} for name, meaning in METHODS.items()]
    return _object_schema(
        "Conversion of the nodes of an operator version.",
        {
            "how": {"oneOf": methods},
            "detail": _TEXT,
            "error": {**_TEXT, "description": "The bound of the error; empty for exact conversions."},
        },
    )


def _change_schema() -> Schema:
    properties = dict.fromkeys(("rule", "subject", "change", "purpose"), _TEXT)
    description = "Change from the previous version, with its effect on existing models."
    return _object_schema(description, {**properties, "class": {"enum": [str(each) for each in ChangeClass]}})


def _reference_schema(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _mapping_schema(description: str, values: Schema) -> Schema:
    return {"type": "object", "description": description, "additionalProperties": values}


def _object_schema(description: str, properties: Mapping[str, Schema]) -> Schema:
    return {
        "description": description,
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _add_used(schema: Any, definitions: Mapping[str, Schema], used: dict[str, Schema]) -> None:
    """Add the definitions that a schema refers to, directly or indirectly, to `used`."""
    if isinstance(schema, dict):
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        if name and name not in used:
            used[name] = definitions[name]
            _add_used(definitions[name], definitions, used)
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _add_used(each, definitions, used)


DATA, SCHEMA = "data/operators.json", "data/schema.json"


def data_files(registry: Registry, package: str) -> dict[str, str]:
    """Return the content of the files `DATA` and `SCHEMA` by path; `package` is the version of opshift."""
    data = json.dumps(registry_data(registry, package), separators=(",", ":"), allow_nan=False)
    return {DATA: f"{data}\n", SCHEMA: f"{json.dumps(data_schema(), indent=1)}\n"}


def registry_data(registry: Registry, package: str) -> Mapping[str, Json]:
    """Return all releases, opsets and operator versions of a registry, as `data_schema` describes them."""
    releases = {
        product: {version: to_plain_data(each) for version, each in versions.items()}
        for product, versions in registry.releases.products.items()
    }
    operators = {
        domain: {
            operator.name: [version_data(each) for each in history_of(operator)]
            for operator in registry.operators(domain)
        }
        for domain in registry.domains()
    }
    opsets = {domain: registry.newest_opset(domain) for domain in registry.domains()}
    return {
        "$schema": "schema.json",
        "format": FORMAT,
        "opshift": package,
        "releases": releases,
        "opsets": opsets,
        "operators": operators,
    }


def version_data(entry: HistoryEntry) -> Mapping[str, Json]:
    """Return the definition of an operator version, its conversions, and the changes from the previous one.

    The site also publishes this data, as a copy of the page of the version.
    """
    changes = classify(entry.before, entry.version) if entry.before else ()
    return {
        **entry.version.to_dict(),
        "history": json_values(entry.as_dict()),
        "changes": [each.as_dict() for each in changes],
    }
