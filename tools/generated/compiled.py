"""Generator of registry/compiled.json and converter/compiled.json, which spare conversions parsing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opshift.converter.rewrite.routes import compile_routes
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
    routes = compile_routes(registry)
    sections: Sections = {"operators": routes["operators"], "adapters": routes["adapters"]}
    return {DEFINITIONS: _json_text(_definitions(operators)), ROUTES: _json_text(sections)}


def _definitions(operators: Mapping[Path, Operator]) -> Sections:
    """Return the definitions, releases and IR versions, keyed by a checksum of their source files."""
    files = {entry_key(path, [OPSETS / TYPES]): operator for path, operator in sorted(operators.items())}
    releases = {entry_key(OPSETS / RELEASES, [OPSETS / CONSUMERS]): Releases.from_folder(OPSETS)}
    ir_versions = {entry_key(IR_VERSIONS, ()): read_ir_versions(IR_VERSIONS)}
    return {"files": {**files, **releases, **ir_versions}}


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
