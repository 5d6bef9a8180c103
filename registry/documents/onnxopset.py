"""Operator sets as `OperatorSetProto` messages, as defined by ONNX's IR specification.

The message lists the operators in effect with their versions, status and description, and function bodies,
but has no fields for signatures. The complete definitions are therefore stored as JSON in an extra field,
which other readers ignore and preserve when they write the message.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from opshift.model.messages import DecodeError, OperatorProto, OperatorSetProto, OperatorStatus
from opshift.model.operator_ids import PATH_NAME_REMEDY, OperatorId, canonical_domain, is_path_name
from opshift.model.plain_data import PlainDataError, json_text, parse_json
from opshift.model.wire_format import bytes_field, find_bytes
from opshift.registry.documents.document import (
    DOCUMENT_REMEDY,
    MAGIC,
    Contradiction,
    DocumentError,
    DocumentHeader,
    ListedOperator,
    OperatorNames,
    OperatorSet,
    RepeatedOperator,
    WrongMagic,
    WrongOpset,
    document_to_dict,
    parse_document,
    read_header,
)
from opshift.registry.function_protos import function_proto

if TYPE_CHECKING:
    from opshift.registry.models import OperatorVersion
    from opshift.registry.registry import Registry

DEFINITIONS_FIELD: Final = 20817
"""The protobuf field number of the extra field, far above the field numbers that ONNX uses."""


def to_onnxopset(operators: OperatorSet, registry: Registry) -> bytes:
    """Return the operator set as a serialized `OperatorSetProto`; equal sets have equal bytes.

    `registry` defines the operators of other domains in function bodies.
    """
    own = {each.name: each for each in operators.operators}

    def find(op_type: str, opset: int, domain: str) -> OperatorVersion | None:
        """Return an operator version from the document if it has this domain, or else from `registry`."""
        if domain == operators.domain:
            return own[op_type].at(opset) if op_type in own else None
        return registry.at(op_type, opset, domain)

    message = OperatorSetProto(
        magic=MAGIC,
        **operators.header._asdict(),
        domain=operators.domain,
        opset_version=operators.opset_version,
        operator=_operator_protos(operators),
        functions=[function_proto(version, find) for version in operators.versions_in_effect if version.body],
    )
    definitions = json_text(document_to_dict(operators)).encode()
    return message.SerializeToString(deterministic=True) + bytes_field(DEFINITIONS_FIELD, definitions)


def _operator_protos(operators: OperatorSet) -> list[OperatorProto]:
    return [
        OperatorProto(
            op_type=version.name,
            since_version=version.since_version,
            status=OperatorStatus.Value(version.status),
            doc_string=version.description,
        )
        for version in operators.versions_in_effect
    ]


def from_onnxopset(content: bytes) -> OperatorSet | OperatorNames:
    """Return the operator set in a serialized `OperatorSetProto`, or only names if it has no definitions.

    Raises `DocumentError` or `DefinitionError`.
    """
    try:
        message = OperatorSetProto.FromString(content)
    except (DecodeError, UnicodeDecodeError) as error:
        raise WrongMagic(f"is not a serialized OperatorSetProto: {error}", remedy=DOCUMENT_REMEDY) from error
    if message.magic != MAGIC:
        raise WrongMagic(f"has the magic {message.magic!r}, expected {MAGIC!r}", remedy=DOCUMENT_REMEDY)
    fields = {each.name: getattr(message, each.name) for each in message.DESCRIPTOR.fields}
    # protobuf may return bytes for a string that is not UTF-8
    if any(
        isinstance(each, bytes) for each in (*fields.values(), *(each.op_type for each in message.operator))
    ):
        raise DocumentError("contains a name that is not UTF-8 text")
    header = read_header(fields)
    definitions = find_bytes(content, DEFINITIONS_FIELD)
    if definitions is None:
        return _listed_operators(message, header)
    try:
        data = parse_json(definitions)
    except PlainDataError as error:
        raise DocumentError(f"contains invalid definitions: {error}") from error
    found = parse_document(data)
    _require_agreement(message, header, found)
    return found


def _listed_operators(message: OperatorSetProto, header: DocumentHeader) -> OperatorNames:
    """Return the operators that a message lists; raise `DocumentError` for invalid names and versions."""
    domain = canonical_domain(message.domain)
    _require_unique_names(message)
    operators = []
    for each in message.operator:
        found = OperatorId(domain, each.op_type, each.since_version)
        if not is_path_name(found.op_type):
            raise DocumentError(f"lists the invalid name {found.op_type!r}", remedy=PATH_NAME_REMEDY)
        if not 1 <= found.since_version <= message.opset_version:
            reason = f"lists {found}, which is not a version of opsets 1 to {message.opset_version}"
            raise WrongOpset(reason, remedy="correct its since_version")
        status = "STABLE" if each.status == OperatorStatus.Value("STABLE") else "EXPERIMENTAL"
        operators.append(ListedOperator(found, status))
    return OperatorNames(domain, message.opset_version, tuple(operators), header)


def _require_unique_names(message: OperatorSetProto) -> None:
    for name, count in Counter(each.op_type for each in message.operator).items():
        if count > 1:
            raise RepeatedOperator(f"{message.domain}.{name} is listed {count} times")


def _require_agreement(message: OperatorSetProto, header: DocumentHeader, found: OperatorSet) -> None:
    """Raise `RepeatedOperator` or `Contradiction` unless a message and its definitions agree."""
    _require_unique_names(message)
    domain, opset = canonical_domain(message.domain), message.opset_version
    if (domain, opset) != (found.domain, found.opset_version):
        raise Contradiction(f"lists {domain} {opset}, but defines {found.domain} {found.opset_version}")
    for key, value in header._asdict().items():
        if value != getattr(found.header, key):
            other = getattr(found.header, key)
            raise Contradiction(f"has {key} {value!r}, but {other!r} in the definitions")
    listed = {(each.op_type, each.since_version, each.status) for each in message.operator}
    defined = {(each.op_type, each.since_version, each.status) for each in _operator_protos(found)}
    for name, since, _ in sorted(listed ^ defined):
        problem = "differs between the operator list and the definitions"
        raise Contradiction(f"{found.domain}.{name}:{since} {problem}")
