"""Spelling of domains in models."""

from __future__ import annotations

from opshift.model.operator_ids import DEFAULT_DOMAIN


def wire(domain: str) -> str:
    """Return a domain as models spell it: the default domain is empty."""
    return "" if domain == DEFAULT_DOMAIN else domain
