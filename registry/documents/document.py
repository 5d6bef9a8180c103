"""Operator sets, and their conversion to and from plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from opshift.registry.catalogue import Registry
from opshift.registry.documents.errors import (
    DocumentError,
    RepeatedOperator,
    UnsupportedVersion,
    WrongDomain,
    WrongMagic,
    WrongOpset,
)
from opshift.registry.errors import UnknownOpset
from opshift.registry.ir_versions import ir_versions
from opshift.registry.loader import operator_of
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.names import canonical_domain
from opshift.registry.type_sets import TypeSets
from opshift.registry.written import written_operator

MAGIC: Final = "ONNXOPSET"
FORM: Final = 1
"""Version of the document format."""


class OperatorSet(NamedTuple):
    """The operators of a domain with all their versions up to one opset."""

    domain: str
    opset_version: int
    operators: tuple[Operator, ...]
    """Sorted by name; includes removed operators, so that a reader can name their replacement."""

    @property
    def in_force(self) -> tuple[OperatorVersion, ...]:
        """The operator versions in effect at the opset."""
        found = (operator.at(self.opset_version) for operator in self.operators)
        return tuple(version for version in found if version)


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


def document_data(operators: OperatorSet) -> dict[str, Any]:
    """Return the document as plain data: a header, and each operator in the format of its YAML file."""
    return {
        "magic": MAGIC,
        "form": FORM,
        "ir_version": newest_ir_version(),
        "domain": operators.domain,
        "opset_version": operators.opset_version,
        "operators": [written_operator(operator) for operator in operators.operators],
    }


def read_data(data: object) -> OperatorSet:
    """Return the operator set defined by plain data.

    Raises:
        DocumentError: one of its subclasses.
        DefinitionError: a definition is invalid.
    """
    if not isinstance(data, Mapping) or data.get("magic") != MAGIC:
        raise WrongMagic(f"lacks the entry magic: {MAGIC}", remedy="pass an operator-set document")
    if data.get("form") != FORM:
        raise UnsupportedVersion(
            f"has form {data.get('form')!r}, expected {FORM}", remedy="use a newer version of opshift"
        )
    check_head(data.get("ir_version"), data.get("domain"), data.get("opset_version"))
    listed = data.get("operators")
    if not isinstance(listed, list):
        raise DocumentError("operators is not a list of definitions")
    operators = tuple(operator_of(each, TypeSets({})) for each in listed)
    found = OperatorSet(canonical_domain(data["domain"]), data["opset_version"], operators)
    _check(found)
    return found


def check_head(ir_version: object, domain: object, opset_version: object) -> None:
    """Check the header of a document.

    Raises:
        UnsupportedVersion, WrongDomain, WrongOpset.
    """
    known = newest_ir_version()
    if type(ir_version) is not int or not 1 <= ir_version <= known:
        raise UnsupportedVersion(f"has unsupported IR version {ir_version!r}", remedy=f"use 1 to {known}")
    if not isinstance(domain, str) or not domain:
        raise WrongDomain("has no domain")
    if type(opset_version) is not int or opset_version < 1:
        raise WrongOpset(
            f"has invalid opset version {opset_version!r}", remedy="use an integer, 1 or greater"
        )


def newest_ir_version() -> int:
    """Return the newest supported IR version."""
    return ir_versions().newest


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


def _check(found: OperatorSet) -> None:
    for name, count in Counter(operator.name for operator in found.operators).items():
        if count > 1:
            raise RepeatedOperator(f"{found.domain}.{name} is defined {count} times")
    for operator in found.operators:
        if operator.domain != found.domain:
            raise WrongDomain(f"{operator.domain}.{operator.name} does not belong to domain {found.domain}")
        newest = operator.versions[-1].since_version
        if newest > found.opset_version:
            raise WrongOpset(f"{operator.versions[-1].id} is newer than opset {found.opset_version}")
