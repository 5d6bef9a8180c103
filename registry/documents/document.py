"""Operator sets: create them from a registry, and convert them to and from plain data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from opshift.model.operator_ids import PATH_NAME_REMEDY, OperatorId, canonical_domain, is_path_name
from opshift.registry.errors import DefinitionError
from opshift.registry.ir_versions import ir_versions
from opshift.registry.loader import operator_from_data
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.to_yaml import PlainData, operator_to_dict
from opshift.registry.type_sets import TypeSets

if TYPE_CHECKING:
    from opshift.registry.registry import Registry

MAGIC: Final = "ONNXOPSET"

DOCUMENT_REMEDY: Final = "pass an operator-set document"

FORMAT_VERSION: Final = 1
"""Version of the document format."""


class DocumentHeader(NamedTuple):
    """Metadata of a document, apart from its domain and opset; an empty text is absent from the file."""

    ir_version: int
    """The IR version of the first ONNX release with the opset, or the newest for domains outside ONNX."""
    ir_version_prerelease: str = ""
    """Pre-release part of the semantic version of the IR, such as `rc.1`."""
    ir_build_metadata: str = ""
    """Build metadata of the semantic version of the IR."""
    doc_string: str = ""


class OperatorSet(NamedTuple):
    """The operators of a domain with all their versions up to one opset."""

    domain: str
    opset_version: int
    operators: tuple[Operator, ...]
    """The operators, including removed ones, so that a reader can name their replacements."""
    header: DocumentHeader

    @property
    def versions_in_effect(self) -> tuple[OperatorVersion, ...]:
        """The operator versions in effect at the opset."""
        found = (operator.at(self.opset_version) for operator in self.operators)
        return tuple(version for version in found if version)


class ListedOperator(NamedTuple):
    """Operator that a document lists without its definition."""

    id: OperatorId
    status: str


class OperatorNames(NamedTuple):
    """The operators that a document lists without definitions; other tools write such documents."""

    domain: str
    opset_version: int
    operators: tuple[ListedOperator, ...]
    """The listed operators, in the order of the document."""
    header: DocumentHeader


def document_to_dict(operators: OperatorSet) -> PlainData:
    """Return the document as plain data: a header, and each operator in the format of its YAML file."""
    return {
        "magic": MAGIC,
        "form": FORMAT_VERSION,
        **{key: value for key, value in operators.header._asdict().items() if value},
        "domain": operators.domain,
        "opset_version": operators.opset_version,
        "operators": [operator_to_dict(operator) for operator in operators.operators],
    }


def parse_document(data: object) -> OperatorSet:
    """Return the operator set defined by plain data; raise `DocumentError` or `DefinitionError`."""
    if not isinstance(data, Mapping) or data.get("magic") != MAGIC:
        raise WrongMagic(f"the key `magic` is not {MAGIC}", remedy=DOCUMENT_REMEDY)
    form = data.get("form")
    if form != FORMAT_VERSION:
        reason = f"the format version `form` is {form!r}, expected {FORMAT_VERSION}"
        is_newer = isinstance(form, int) and form > FORMAT_VERSION
        remedy = "use a newer version of opshift" if is_newer else "correct the key `form`"
        raise UnsupportedVersion(reason, remedy=remedy)
    header = read_header(data)
    listed = data.get("operators")
    if not isinstance(listed, list):
        raise DocumentError("operators is not a list of definitions")
    operators = tuple(operator_from_data(each, TypeSets({})) for each in listed)
    found = OperatorSet(canonical_domain(data["domain"]), data["opset_version"], operators, header)
    _require_consistent(found)
    return found


def read_header(fields: Mapping[str, object]) -> DocumentHeader:
    """Validate and return the header of a document.

    Raises:
        UnsupportedVersion, WrongDomain, WrongOpset: the IR version, domain or opset is missing or invalid.
        DocumentError: another field is invalid.
    """
    ir_version, domain, opset = (fields.get(key) for key in ("ir_version", "domain", "opset_version"))
    known = ir_versions().newest
    if type(ir_version) is not int or not 1 <= ir_version <= known:
        raise UnsupportedVersion(f"has unsupported IR version {ir_version!r}", remedy=f"use 1 to {known}")
    if not isinstance(domain, str):
        raise WrongDomain("has no domain", remedy="add the entry domain")
    # The empty name is valid: in ONNX, it is the default domain (IR specification, "Operator Sets").
    if domain and not is_path_name(domain):
        raise WrongDomain(f"has the invalid domain {domain!r}", remedy=PATH_NAME_REMEDY)
    if type(opset) is not int or opset < 1:
        reason = f"has invalid opset version {opset!r}"
        raise WrongOpset(reason, remedy="use an integer, 1 or greater")
    texts = {}
    for key, (form, remedy) in _HEADER_TEXTS.items():
        text = fields.get(key, "")
        if not isinstance(text, str) or (text and not form.fullmatch(text)):
            raise DocumentError(f"has the invalid {key} {text!r}", remedy=remedy)
        texts[key] = text
    return DocumentHeader(ir_version, **texts)


_NUMBER_OR_WORD = r"(?:0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*)"

_HEADER_TEXTS = {
    "ir_version_prerelease": (
        re.compile(rf"{_NUMBER_OR_WORD}(?:\.{_NUMBER_OR_WORD})*", re.ASCII),
        "use identifiers of letters, digits and hyphens, separated by dots, such as rc.1",
    ),
    "ir_build_metadata": (
        re.compile(r"[\dA-Za-z-]+(?:\.[\dA-Za-z-]+)*", re.ASCII),
        "use identifiers of letters, digits and hyphens, separated by dots, such as 2026.11",
    ),
    "doc_string": (re.compile(r"(?s).*"), "use text"),
}
"""Pattern and remedy for the optional texts of a header (Semantic Versioning 2.0.0, items 9 and 10)."""


def _require_consistent(found: OperatorSet) -> None:
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
    """The file cannot be parsed, or its magic value is not `ONNXOPSET`."""


class UnsupportedVersion(DocumentError):
    """The IR version or the format version of the document is not supported."""


class WrongDomain(DocumentError):
    """The domain is missing, invalid or already defined, or an operator belongs to a different domain."""


class WrongOpset(DocumentError):
    """The opset version is not a positive integer, or an operator version is not from 1 to the opset."""


class RepeatedOperator(DocumentError):
    """The document contains an operator more than once."""


class NoDefinitions(DocumentError):
    """The document lists operators without their definitions."""


class Contradiction(DocumentError):
    """The fields of an OperatorSetProto contradict the definitions stored in it."""


def operator_set(
    registry: Registry,
    domain: str,
    opset_version: int | None = None,
    *,
    prerelease: str = "",
    build_metadata: str = "",
    doc_string: str = "",
) -> OperatorSet:
    """Return the operators of a domain at an opset (default: newest), without later versions and removals.

    Args:
        registry: the definitions.
        domain: the domain.
        opset_version: the opset.
        prerelease: pre-release part of the semantic version of the IR, without `-`.
        build_metadata: build metadata of the semantic version of the IR, without `+`.
        doc_string: text that describes the set.

    Raises:
        UnknownDomain, UnknownOpset: the registry lacks the domain or its opset.
        DocumentError: a part of the semantic version is invalid.
    """
    domain = canonical_domain(domain)
    opset = registry.newest_opset(domain) if opset_version is None else opset_version
    registry.require_opset(opset, domain)
    cut = (_without_later_versions(operator, opset) for operator in registry.operators(domain))
    header = read_header(
        {
            "domain": domain,
            "opset_version": opset,
            # `ir_version_for` returns 0 for private domains; they get the newest IR version
            "ir_version": registry.releases.ir_version_for({domain: opset}) or ir_versions().newest,
            "ir_version_prerelease": prerelease,
            "ir_build_metadata": build_metadata,
            "doc_string": doc_string,
        }
    )
    return OperatorSet(domain, opset, tuple(operator for operator in cut if operator), header)


def _without_later_versions(operator: Operator, opset: int) -> Operator | None:
    versions = [version for version in operator.versions if version.since_version <= opset]
    kept = tuple(_without_later_removal(version, opset) for version in versions)
    return replace(operator, versions=kept) if kept else None


def _without_later_removal(version: OperatorVersion, opset: int) -> OperatorVersion:
    is_later = version.removal is not None and version.removal.removed_in > opset
    return replace(version, removal=None) if is_later else version
