"""Load models in OpenVINO, compiled for the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openvino

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SETTINGS = {
    "INFERENCE_PRECISION_HINT": "f32",  # Float32 precision, because some processors compute in bfloat16.
    "INFERENCE_NUM_THREADS": "1",
}

CORE = openvino.Core()


def load(path: str) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
    """Read and compile a model."""
    compiled = CORE.compile_model(CORE.read_model(path), "CPU", SETTINGS)
    # An input that is also an output has only the name of its node, not a separate one.
    ports = [{*each.names, each.node.friendly_name} for each in compiled.inputs]

    def run(inputs: Mapping[str, Any]) -> Sequence[Any]:
        fed = {position: name for position, names in enumerate(ports) for name in inputs if name in names}
        # An input that is returned as an output may have the name of the output; the order stays the same.
        unnamed = (position for position in range(len(ports)) if position not in fed)
        fed |= zip(unnamed, (name for name in inputs if name not in fed.values()), strict=False)
        return list(compiled({position: inputs[name] for position, name in fed.items()}).values())

    return run
