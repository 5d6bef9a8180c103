"""Runtimes that do not exist, with the facts that a test needs."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from packaging.version import Version

from opshift.registry.runtimes.runtime import Runtime, RuntimeEvidence

EVIDENCE = RuntimeEvidence(kind="documentation", source="https://example.com", date="2026-11-23")


def fictional_runtime(**facts: Any) -> Runtime:
    """Return a runtime with some facts, by default one that expands no functions."""
    defaults = {"runtime": "device", "version": "1", "evidence": EVIDENCE, "expands_functions": False}
    return Runtime(**{**defaults, **facts})


needs_newest_onnx = pytest.mark.skipif(
    Version(onnx.__version__) < Version("1.23"),
    reason="the oldest protobuf needs an onnx without the newest types and opsets",
)
"""Mark of tests whose oracle is the newest onnx."""
