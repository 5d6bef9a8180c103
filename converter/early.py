"""Operators that a runtime writes into models of opsets that do not have them yet."""

from __future__ import annotations

from typing import Final

from opshift.registry.catalogue import Registry
from opshift.registry.models import OperatorVersion
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

EARLY: Final = {"LayerNormalization": 17}
"""Of the default domain, with the version that is meant: onnxruntime fuses nodes to it at any opset."""


def early_operator(registry: Registry, op_type: str, opset: int, domain: str) -> OperatorVersion | None:
    """The later version that a runtime means by a name that the opset does not have."""
    since = EARLY.get(op_type, 0)
    if not 0 < opset < since or canonical_domain(domain) != DEFAULT_DOMAIN:
        return None
    return registry.at(op_type, since, domain)


def operator_at(registry: Registry, op_type: str, opset: int, domain: str) -> OperatorVersion | None:
    """The version in force at an opset, or the later one that a runtime means."""
    return registry.at(op_type, opset, domain) or early_operator(registry, op_type, opset, domain)
