"""Base class of pydantic models outside operator definitions."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Immutable model that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
