"""Newest released opset and next opset of a domain."""

from __future__ import annotations

from opshift.registry.catalogue import Registry
from opshift.registry.errors import UnknownDomain
from opshift.registry.names import canonical_domain


def released_opset(registry: Registry, domain: str) -> int:
    """Return the newest released opset of a domain; 0 if the registry has none.

    In a domain that `releases.yaml` does not list, every opset counts as released once it is defined.
    """
    domain = canonical_domain(domain)
    listed = [each for each in registry.releases.onnx.values() if domain in each.opsets]
    if listed:
        return max((each.opsets[domain] for each in listed if each.released), default=0)
    try:
        return registry.newest_opset(domain)
    except UnknownDomain:
        return 0


def next_opset(registry: Registry, domain: str) -> int:
    """Return the opset that a new operator version enters: the one after the newest released opset."""
    return released_opset(registry, domain) + 1
