"""Which opset of a domain comes next, and which are released."""

from __future__ import annotations

from opshift.registry.catalogue import Registry
from opshift.registry.errors import UnknownDomain
from opshift.registry.names import canonical_domain


def released_opset(registry: Registry, domain: str) -> int:
    """The newest released opset; 0 if the registry has none.

    The opsets of a domain that `releases.yaml` does not name are released as soon as they are there.
    """
    domain = canonical_domain(domain)
    named = [each for each in registry.releases.onnx.values() if domain in each.opsets]
    if named:
        return max((each.opsets[domain] for each in named if each.released), default=0)
    try:
        return registry.newest_opset(domain)
    except UnknownDomain:
        return 0


def next_opset(registry: Registry, domain: str) -> int:
    """The opset that a new operator version enters: the one in preparation, or the one after the newest."""
    return released_opset(registry, domain) + 1
