"""Runtime with few kernels, for tests."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import parser

from opshift.registry.record import from_plain_data
from opshift.registry.runtimes.runtime import Runtime


def toy_runtime(**changes: Any) -> Runtime:
    """Return a runtime with some keys changed."""
    content = {
        "runtime": "toy",
        "version": "1.0",
        "opsets": {"ai.onnx": 20, "com.microsoft": 1},
        "ir_version": 9,
        "expands_functions": True,
        "evidence": {"kind": "measurement", "source": "tests", "date": "2026-11-23"},
        "operators": {
            "ai.onnx.Add": [{"versions": [7, 14], "types": {"T": ["float", "int64"]}}],
            "ai.onnx.Constant": [{"versions": [1, 20]}],
            "ai.onnx.Div": [{"versions": [7, 14], "types": {"T": ["float"]}}],
            "ai.onnx.Erf": [{"versions": [13, 13], "types": {"T": ["float"]}}],
            "ai.onnx.If": [{"versions": [1, 19]}],
            "ai.onnx.Mul": [{"versions": [7, 14], "types": {"T": ["float"]}}],
            "ai.onnx.Relu": [{"versions": [13, 14], "types": {"T": ["float"]}}],
            "ai.onnx.SimplifiedLayerNormalization": [{"versions": [1, 1], "nonstandard": True}],
            "com.microsoft.QuickGelu": [{"versions": [1, 1]}],
        },
    }
    return from_plain_data(Runtime, {**content, **changes})


def model(body: str, types: str = "float[2] x", opset: int = 20, functions: str = "") -> onnx.ModelProto:
    """Return a model with the inputs `types`, the nodes `body` and the output `y`."""
    imports = f'"" : {opset}, "local" : 1, "com.microsoft" : 1'
    header = f"<ir_version: 9, opset_import: [{imports}]>"
    return parser.parse_model(f"{header} g ({types}) => (y) {{ {body} }} {functions}")
