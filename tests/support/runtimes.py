"""Runtimes that do not exist, with the facts that a test needs, and the support of models by runtimes."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.parser
import pytest
from packaging.version import Version

from opshift.model.files import model_of
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import get_runtime
from opshift.registry.runtimes.runtime import Runtime, RuntimeEvidence
from opshift.runtimes.check_support import ModelSupport, RuntimeCheck
from opshift.runtimes.model_nodes import ModelNodes

EVIDENCE = RuntimeEvidence(kind="documentation", source="https://example.com", date="2026-11-23")


def fictional_runtime(**facts: Any) -> Runtime:
    """Return a runtime with some facts, by default one that expands no functions."""
    defaults = {"runtime": "device", "version": "1", "evidence": EVIDENCE, "expands_functions": False}
    return Runtime(**{**defaults, **facts})


def model_of_nodes(inputs: str, nodes: str, opset: int) -> onnx.ModelProto:
    """Return a model with nodes that compute the output `y`, a float tensor of unknown shape."""
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g ({inputs}) => (float[] y) {{ {nodes} }}'
    )


def support_of(model: onnx.ModelProto, runtime: str) -> ModelSupport:
    """Return which nodes of a model the named runtime does not run."""
    nodes = ModelNodes(model_of(model.SerializeToString())[0], default_registry())
    return RuntimeCheck(get_runtime(runtime)).check(nodes)


def verdict_of(model: onnx.ModelProto, runtime: str) -> str:
    """Return whether the named runtime runs a model: `does not run`, `may run`, `warns` or `runs`."""
    support = support_of(model, runtime)
    if support.missing:
        return "does not run"
    return "may run" if support.uncertain else "warns" if support.warnings else "runs"


needs_newest_onnx = pytest.mark.skipif(
    Version(onnx.__version__) < Version("1.23"),
    reason="the oldest protobuf needs an onnx without the newest types and opsets",
)
"""Mark of tests whose oracle is the newest onnx."""
