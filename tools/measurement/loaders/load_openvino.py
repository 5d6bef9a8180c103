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
    # unused inputs are removed, and one that is also an output has only the name of its node
    ports = [{*each.names, each.node.friendly_name} for each in compiled.inputs]

    def run(inputs: Mapping[str, Any]) -> Sequence[Any]:
        fed = {
            position: value
            for position, names in enumerate(ports)
            for name, value in inputs.items()
            if name in names
        }
        return list(compiled(fed).values())

    return run
