"""Generator of opsets/schema.json: the JSON Schema of an operator file, from the models in registry/."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from opshift.registry.editor_schema.json_schema import schema_text

SCHEMA = Path("opsets", "schema.json")


def files() -> Mapping[Path, str]:
    """Return the schema."""
    return {SCHEMA: schema_text()}
