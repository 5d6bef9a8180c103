"""Metadata key of the record of a reversible conversion.

Apart from `record`, which imports pydantic: every conversion looks for the key.
"""

from __future__ import annotations

from typing import Final

from opshift.model.messages import ModelProto

METADATA_KEY: Final = "opshift.reversible"
"""Key in `ModelProto.metadata_props`."""


def has_record(model: ModelProto) -> bool:
    """Return whether a model contains a record."""
    return any(each.key == METADATA_KEY for each in model.metadata_props)
