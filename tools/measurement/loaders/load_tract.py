"""Load models in tract, optimized."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tract

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def load(path: str) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
    """Read and optimize a model."""
    model = tract.onnx().load(path)
    names = [model.input_name(position) for position in range(model.input_count())]
    runnable = model.into_model().into_runnable()
    return lambda inputs: [each.to_numpy() for each in runnable.run([inputs[name] for name in names])]
