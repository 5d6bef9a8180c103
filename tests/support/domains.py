"""Domains as models spell them."""

from __future__ import annotations

from opshift.registry.names import DEFAULT_DOMAIN


def wire(domain: str) -> str:
    """A domain as models spell it: ONNX's own has no name."""
    return "" if domain == DEFAULT_DOMAIN else domain
