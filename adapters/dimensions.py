"""Read the dimensions of a TensorShapeProto."""

from __future__ import annotations

from typing import Any


def sizes_of(shape: Any) -> tuple[int | None, ...]:
    """Return the dimensions of a TensorShapeProto, `None` for each unknown or symbolic dimension."""
    return tuple([dim.dim_value if _has_size(dim) else None for dim in shape.dim])


def _has_size(dim: Any) -> Any:
    # Some exporters write -1 for an unknown dimension.
    return dim.HasField("dim_value") and dim.dim_value >= 0
