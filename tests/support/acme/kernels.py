"""Kernels of com.acme for `onnx.reference`."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


def run_acme(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """Run a model with nodes of com.acme at the version that it imports."""
    version = next((each.version for each in model.opset_import if each.domain == "com.acme"), 1)
    kernels = [_scale(version), *([_limit(version)] if version > 1 else [])]
    return list(ReferenceEvaluator(model, new_ops=kernels).run(None, feeds))


def _scale(version: int) -> type[OpRun]:
    class Scale(OpRun):  # type: ignore[misc]  # onnx has no types
        op_domain = "com.acme"

        def _run(self, x: Any, *rest: Any, **attributes: Any) -> tuple[Any]:
            values = _attributes(self)
            if version < 3:
                found = x * values.get("factor", 2.0) + values.get("offset", 0.0)
            else:
                found = (x + values.get("shift", 0.0)) * rest[0]
            return (np.asarray(found, np.float32),)

    return Scale


def _limit(version: int) -> type[OpRun]:
    class Limit(OpRun):  # type: ignore[misc]  # onnx has no types
        op_domain = "com.acme"

        def _run(self, x: Any, **attributes: Any) -> tuple[Any]:
            top = _attributes(self).get("top" if version < 3 else "maximum", 6.0)
            return (np.clip(x, 0, top).astype(np.float32),)

    return Limit


def _attributes(kernel: Any) -> dict[str, Any]:
    return {each.name: onnx.helper.get_attribute_value(each) for each in kernel.onnx_node.attribute}
