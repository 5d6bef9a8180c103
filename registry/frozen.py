"""The base of pydantic models that are no part of a definition."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Immutable, and strict about keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")
