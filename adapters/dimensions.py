"""What a model states of the dimensions of a value."""

from __future__ import annotations

from typing import Any


def sizes_of(shape: Any) -> tuple[int | None, ...]:
    """The sizes in a TensorShapeProto; `None` for each that is not known, in some models -1."""
    return tuple([dim.dim_value if _states_size(dim) else None for dim in shape.dim])


def _states_size(dim: Any) -> Any:
    return dim.HasField("dim_value") and dim.dim_value >= 0
