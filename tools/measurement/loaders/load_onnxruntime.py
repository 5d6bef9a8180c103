"""Load models in onnxruntime for the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnxruntime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

OPTIONS = onnxruntime.SessionOptions()
OPTIONS.log_severity_level = 4
OPTIONS.intra_op_num_threads = 1

onnxruntime.set_default_logger_severity(4)


def load(path: str) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
    """Load a model; its runs raise ValueError for outputs without a value, which old optimizers lose."""
    session = onnxruntime.InferenceSession(path, OPTIONS, providers=["CPUExecutionProvider"])

    def run(inputs: Mapping[str, Any]) -> list[Any]:
        results = list(session.run(None, dict(inputs)))
        for output, result in zip(session.get_outputs(), results, strict=True):
            if result is None and "optional" not in output.type:
                raise ValueError(f"the output {output.name} has no value")
        return results

    return run
