"""Models with symbolic dimensions."""

from __future__ import annotations

from typing import Any


def with_symbolic_dims(model: Any) -> Any:
    """Replace every input dimension by a distinct symbol; ranks stay known."""
    for value in model.graph.input:
        for position, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{position}"
    return model
