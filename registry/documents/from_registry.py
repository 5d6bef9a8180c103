"""Operator sets, and their conversion to and from plain data."""

from __future__ import annotations

from dataclasses import replace

from opshift.model.operator_ids import canonical_domain
from opshift.registry.documents.document import OperatorSet
from opshift.registry.errors import UnknownOpset
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.registry import Registry


def operator_set(registry: Registry, domain: str, opset_version: int | None = None) -> OperatorSet:
    """Return a domain as of an opset (the newest by default), without later versions and removals.

    Raises:
        UnknownDomain: the registry has no definitions for the domain.
        UnknownOpset: the domain has no such opset.
    """
    domain = canonical_domain(domain)
    newest = registry.newest_opset(domain)
    opset = newest if opset_version is None else opset_version
    if not 1 <= opset <= newest:
        remedy = f"use an opset version from 1 to {newest}"
        raise UnknownOpset(f"there is no opset {opset} of {domain}", remedy=remedy)
    cut = (_truncate(operator, opset) for operator in registry.operators(domain))
    return OperatorSet(domain, opset, tuple(operator for operator in cut if operator))


def _truncate(operator: Operator, opset: int) -> Operator | None:
    versions = tuple(
        _without_later_removal(version, opset)
        for version in operator.versions
        if version.since_version <= opset
    )
    return replace(operator, versions=versions) if versions else None


def _without_later_removal(version: OperatorVersion, opset: int) -> OperatorVersion:
    if version.removal is None or version.removal.removed_in <= opset:
        return version
    return replace(version, removal=None)
