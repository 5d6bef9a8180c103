"""Domains: spelling in models, and the operators of ONNX."""

from __future__ import annotations

from opshift import default_registry
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.models import Operator


def wire(domain: str) -> str:
    """Return a domain as models spell it: the default domain is empty."""
    return "" if domain == DEFAULT_DOMAIN else domain


def onnx_operators() -> list[Operator]:
    """Return the operators in the domains of ONNX."""
    registry = default_registry()
    return [each for each in registry.operators() if registry.releases.newest_opset(each.domain) is not None]
