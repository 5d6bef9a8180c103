"""Operator sets of a registry's domains."""

from dataclasses import replace

from opshift.model.operator_ids import canonical_domain
from opshift.registry.documents.document import OperatorSet
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.registry import Registry


def operator_set(registry: Registry, domain: str, opset_version: int | None = None) -> OperatorSet:
    """Return a domain as of an opset (the newest by default), without later versions and removals.

    Raises `UnknownDomain` or `UnknownOpset` if the registry lacks it.
    """
    domain = canonical_domain(domain)
    opset = registry.newest_opset(domain) if opset_version is None else opset_version
    registry.require_opset(opset, domain)
    cut = (_truncate(operator, opset) for operator in registry.operators(domain))
    return OperatorSet(domain, opset, tuple(operator for operator in cut if operator))


def _truncate(operator: Operator, opset: int) -> Operator | None:
    versions = [version for version in operator.versions if version.since_version <= opset]
    kept = tuple(_without_later_removal(version, opset) for version in versions)
    return replace(operator, versions=kept) if kept else None


def _without_later_removal(version: OperatorVersion, opset: int) -> OperatorVersion:
    is_later = version.removal is not None and version.removal.removed_in > opset
    return replace(version, removal=None) if is_later else version
