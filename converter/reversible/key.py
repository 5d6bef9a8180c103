"""Metadata key of the record."""

from __future__ import annotations

from typing import Any, Final

KEY: Final = "opshift.reversible"
"""Key in `ModelProto.metadata_props`."""


def has_record(model: Any) -> bool:
    """Return whether a model contains a record."""
    return any(each.key == KEY for each in model.metadata_props)
