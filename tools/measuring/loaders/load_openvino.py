"""Load models in OpenVINO, compiled for the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openvino

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SETTINGS = {
    "INFERENCE_PRECISION_HINT": "f32",  # some processors compute in bfloat16
    "INFERENCE_NUM_THREADS": "1",
}

CORE = openvino.Core()


def load(path: str) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
    """Read and compile a model."""
    compiled = CORE.compile_model(CORE.read_model(path), "CPU", SETTINGS)
    return lambda inputs: list(compiled(dict(inputs)).values())
