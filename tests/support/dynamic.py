"""Models that do not say how long their dimensions are."""

from __future__ import annotations

from typing import Any


def symbolic(model: Any) -> Any:
    """The model, with a name of its own for every dimension of its inputs; ranks stay known."""
    for value in model.graph.input:
        for position, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{position}"
    return model
