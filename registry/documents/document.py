"""Operator sets, and their conversion to and from plain data."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from opshift.model.operator_ids import PATH_NAME_REMEDY, canonical_domain, is_path_name
from opshift.registry.errors import DefinitionError
from opshift.registry.ir_versions import ir_versions
from opshift.registry.loader import operator_from_data
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.to_yaml import PlainData, operator_to_dict
from opshift.registry.type_sets import TypeSets

MAGIC: Final = "ONNXOPSET"

FORMAT_VERSION: Final = 1
"""Version of the document format."""


class OperatorSet(NamedTuple):
    """The operators of a domain with all their versions up to one opset."""

    domain: str
    opset_version: int
    operators: tuple[Operator, ...]
    """Sorted by name; includes removed operators, so that a reader can name their replacement."""

    @property
    def versions_in_effect(self) -> tuple[OperatorVersion, ...]:
        """The operator versions in effect at the opset."""
        found = (operator.at(self.opset_version) for operator in self.operators)
        return tuple(version for version in found if version)


def document_to_dict(operators: OperatorSet) -> PlainData:
    """Return the document as plain data: a header, and each operator in the format of its YAML file."""
    return {
        "magic": MAGIC,
        "form": FORMAT_VERSION,
        "ir_version": ir_versions().newest,
        "domain": operators.domain,
        "opset_version": operators.opset_version,
        "operators": [operator_to_dict(operator) for operator in operators.operators],
    }


def parse_document(data: object) -> OperatorSet:
    """Return the operator set defined by plain data; raise `DocumentError` or `DefinitionError`."""
    if not isinstance(data, Mapping) or data.get("magic") != MAGIC:
        raise WrongMagic(f"lacks the entry magic: {MAGIC}", remedy="pass an operator-set document")
    if data.get("form") != FORMAT_VERSION:
        reason = f"has form {data.get('form')!r}, expected {FORMAT_VERSION}"
        raise UnsupportedVersion(reason, remedy="use a newer version of opshift")
    check_header(data.get("ir_version"), data.get("domain"), data.get("opset_version"))
    listed = data.get("operators")
    if not isinstance(listed, list):
        raise DocumentError("operators is not a list of definitions")
    operators = tuple(operator_from_data(each, TypeSets({})) for each in listed)
    found = OperatorSet(canonical_domain(data["domain"]), data["opset_version"], operators)
    _check(found)
    return found


def check_header(ir_version: object, domain: object, opset_version: object) -> None:
    """Raise `UnsupportedVersion`, `WrongDomain` or `WrongOpset` if the header of a document is invalid."""
    known = ir_versions().newest
    if type(ir_version) is not int or not 1 <= ir_version <= known:
        raise UnsupportedVersion(f"has unsupported IR version {ir_version!r}", remedy=f"use 1 to {known}")
    if not isinstance(domain, str) or not domain:
        raise WrongDomain("has no domain")
    if not is_path_name(domain):
        raise WrongDomain(f"has the invalid domain {domain!r}", remedy=PATH_NAME_REMEDY)
    if type(opset_version) is not int or opset_version < 1:
        reason = f"has invalid opset version {opset_version!r}"
        raise WrongOpset(reason, remedy="use an integer, 1 or greater")


def _check(found: OperatorSet) -> None:
    for name, count in Counter(operator.name for operator in found.operators).items():
        if count > 1:
            raise RepeatedOperator(f"{found.domain}.{name} is defined {count} times")
    for operator in found.operators:
        if operator.domain != found.domain:
            raise WrongDomain(f"{operator.domain}.{operator.name} does not belong to domain {found.domain}")
        newest = operator.versions[-1]
        if newest.since_version > found.opset_version:
            raise WrongOpset(f"{newest.id} is newer than opset {found.opset_version}")


class DocumentError(DefinitionError):
    """The file is not an operator-set document that this registry can use."""


class WrongMagic(DocumentError):
    """The file is not marked as an operator set."""


class UnsupportedVersion(DocumentError):
    """The IR version or the format version of the document is not supported."""


class WrongDomain(DocumentError):
    """The domain is missing or already defined, or an operator belongs to a different one."""


class WrongOpset(DocumentError):
    """The opset version is missing or below 1, or an operator is newer than it."""


class RepeatedOperator(DocumentError):
    """The document contains an operator more than once."""


class NoDefinitions(DocumentError):
    """The document lists operators without their definitions."""


class Contradiction(DocumentError):
    """The message lists operators that differ from the definitions."""
