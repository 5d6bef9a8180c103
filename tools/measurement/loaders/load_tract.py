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
    return lambda inputs: [read(each) for each in runnable.run([inputs[name] for name in names])]


def read(value: tract.Tensor) -> Any:
    """Return an output as an array; sizes have a type of tract that must be converted first."""
    try:
        return value.to_numpy()
    except tract.TractError:
        return value.convert_to(tract.DatumType.I64).to_numpy()
