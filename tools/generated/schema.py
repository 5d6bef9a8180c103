"""Generator of the JSON Schemas of files of operators and runtimes, from the models in registry/."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from opshift.registry.editor_schema import runtime_schema_text, schema_text

SCHEMA = Path("opsets", "schema.json")
RUNTIME_SCHEMA = Path("opsets", "schema-runtime.json")


PATHS: Final = (SCHEMA, RUNTIME_SCHEMA)


def files() -> Mapping[Path, str]:
    """Return the schemas."""
    return {SCHEMA: schema_text(), RUNTIME_SCHEMA: runtime_schema_text()}
