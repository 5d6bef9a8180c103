"""Runtimes that do not exist, with the facts that a test needs."""

from __future__ import annotations

from typing import Any

from opshift.registry.runtimes.runtime import Runtime, RuntimeEvidence

EVIDENCE = RuntimeEvidence(kind="documentation", source="https://example.com", date="2026-11-23")


def fictional_runtime(**facts: Any) -> Runtime:
    """Return a runtime with some facts, by default one that expands no functions."""
    defaults = {"runtime": "device", "version": "1", "evidence": EVIDENCE, "expands_functions": False}
    return Runtime(**{**defaults, **facts})
