"""Base class of pydantic models that are not part of operator definitions, such as waivers."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Immutable model that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
