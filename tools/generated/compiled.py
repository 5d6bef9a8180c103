"""Generator of registry/compiled.json and converter/compiled.json, which spare conversions parsing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import networkx as nx

from opshift.adapters.core.adapter_table import adapter_table
from opshift.converter.rewrite.version_graph import build_version_graph
from opshift.opsets import OPSETS
from opshift.registry.definition_files import CONSUMERS, RELEASES, TYPES
from opshift.registry.ir_versions import IR_VERSIONS, read_ir_versions
from opshift.registry.loader import load_operator
from opshift.registry.models import Operator
from opshift.registry.precompiled import encode_record, entry_key
from opshift.registry.registry import Registry
from opshift.registry.releases import Releases

DEFINITIONS, ROUTES = Path("registry", "compiled.json"), Path("converter", "rewrite", "compiled.json")
Sections = Mapping[str, Mapping[str, Any]]


def files() -> Mapping[Path, str]:
    """Return both files."""
    registry = Registry((OPSETS,))
    operators = {
        path: load_operator(path, registry.types)
        for domain in registry.domains()
        for path in (registry.file_of(name, domain) for name in registry.names(domain))
    }
    return {DEFINITIONS: _json_text(_definitions(operators)), ROUTES: _json_text(_routes(operators.values()))}


def _definitions(operators: Mapping[Path, Operator]) -> Sections:
    """Return the definitions, releases and IR versions, keyed by a checksum of their source files."""
    files = {entry_key(path, [OPSETS / TYPES]): operator for path, operator in sorted(operators.items())}
    releases = {entry_key(OPSETS / RELEASES, [OPSETS / CONSUMERS]): Releases.from_folder(OPSETS)}
    ir_versions = {entry_key(IR_VERSIONS, ()): read_ir_versions(IR_VERSIONS)}
    return {"files": {**files, **releases, **ir_versions}}


def _routes(operators: Iterable[Operator]) -> Sections:
    """Return the shortest paths in each version graph, and the module of each adapter."""
    adapters = {
        str(pair): function.__module__
        for pair, function in sorted(adapter_table().items())
        if function.__module__.startswith("opshift.adapters.")  # leave out installed extensions
    }
    return {
        "operators": {f"{each.domain}.{each.name}": _paths(each) for each in operators},
        "adapters": adapters,
    }


def _paths(operator: Operator) -> dict[str, Any]:
    graph = build_version_graph(operator, adapter_table())
    paths = {
        f"{start.since_version} -> {goal.since_version}": [each.since_version for each in path]
        for start, found in nx.all_pairs_shortest_path(graph)
        for goal, path in found.items()
        if start != goal
    }
    return {"versions": [each.since_version for each in operator.versions], "paths": paths}


def _json_text(sections: Sections) -> str:
    """Return JSON with one line for each entry, so that an entry can be found without parsing the file."""
    texts = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(
            f" {json.dumps(key)}: {json.dumps(each, default=encode_record)}" for key, each in section.items()
        )
        for name, section in sections.items()
    ]
    return "{\n" + "\n},\n".join(texts) + "\n}\n}\n"
