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
    """Load a model."""
    session = onnxruntime.InferenceSession(path, OPTIONS, providers=["CPUExecutionProvider"])
    return lambda inputs: list(session.run(None, dict(inputs)))
