"""Where a model keeps the record of what conversions replaced."""

from __future__ import annotations

from typing import Any, Final

KEY: Final = "opshift.reversible"
"""The key in `ModelProto.metadata_props`."""


def has_record(model: Any) -> bool:
    """Whether a model carries a record."""
    return any(each.key == KEY for each in model.metadata_props)
