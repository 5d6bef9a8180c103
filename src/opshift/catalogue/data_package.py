"""All definitions as one JSON file with a JSON Schema, for tools in any language."""

import json
from collections.abc import Mapping

from opshift.catalogue.data_schema import FORMAT, data_schema
from opshift.catalogue.history import HistoryEntry, history_of
from opshift.model.plain_data import Json, json_values
from opshift.registry.changes.classify import classify
from opshift.registry.record import to_plain_data
from opshift.registry.registry import Registry

DATA, SCHEMA = "data/operators.json", "data/schema.json"


def data_files(registry: Registry, package: str) -> dict[str, str]:
    """Return the content of both files by path; `package` is the version of opshift."""
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
    """Return the definition of an operator version, its conversions, and what changed from the previous one.

    It is also the JSON copy of the page of the version.
    """
    changes = classify(entry.before, entry.version) if entry.before else ()
    return {
        **entry.version.to_dict(),
        "history": json_values(entry.as_dict()),
        "changes": [each.as_dict() for each in changes],
    }
