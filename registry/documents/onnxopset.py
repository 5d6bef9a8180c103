"""Operator sets as `OperatorSetProto` messages, as defined by ONNX's IR specification.

The message lists the operators in effect with their versions, status and description, and function bodies,
but has no fields for signatures. The complete definitions are therefore stored as JSON in an extra field,
which other readers ignore and preserve when they write the message.
"""

from __future__ import annotations

import json
from typing import Final

from opshift.registry.documents.document import (
    MAGIC,
    OperatorSet,
    check_head,
    document_data,
    newest_ir_version,
    read_data,
)
from opshift.registry.documents.errors import (
    Contradiction,
    DocumentError,
    NoDefinitions,
    RepeatedOperator,
    WrongMagic,
)
from opshift.registry.documents.functions import function_proto
from opshift.registry.documents.json_text import json_text
from opshift.registry.documents.wire import bytes_field, find_bytes
from opshift.registry.messages import DecodeError, OperatorProto, OperatorSetProto, OperatorStatus
from opshift.registry.names import canonical_domain

DEFINITIONS: Final = 20817
"""The number of the extra field, far above the numbers of ONNX's own fields."""
Listed = tuple[str, int, int]


def to_onnxopset(operators: OperatorSet) -> bytes:
    """Return the operator set as a serialized `OperatorSetProto`; equal sets have equal bytes."""
    message = OperatorSetProto(
        magic=MAGIC,
        ir_version=newest_ir_version(),
        domain=operators.domain,
        opset_version=operators.opset_version,
        operator=[
            OperatorProto(
                op_type=version.name,
                since_version=version.since_version,
                status=OperatorStatus.Value(version.status),
                doc_string=version.description,
            )
            for version in operators.in_force
        ],
        functions=[function_proto(version) for version in operators.in_force if version.body],
    )
    definitions = json_text(document_data(operators)).encode()
    return message.SerializeToString(deterministic=True) + bytes_field(DEFINITIONS, definitions)


def from_onnxopset(content: bytes) -> OperatorSet:
    """Return the operator set in a serialized `OperatorSetProto` with definitions.

    Raises:
        DocumentError: one of its subclasses.
        DefinitionError: a definition is invalid.
    """
    try:
        message = OperatorSetProto.FromString(content)
    except (DecodeError, UnicodeDecodeError) as error:
        raise WrongMagic(f"is not a serialized OperatorSetProto: {error}") from error
    if message.magic != MAGIC:
        raise WrongMagic(f"has the magic {message.magic!r}, expected {MAGIC!r}")
    check_head(message.ir_version, message.domain, message.opset_version)
    definitions = find_bytes(content, DEFINITIONS)
    if definitions is None:
        remedy = "export the set with opshift, which adds the definitions"
        raise NoDefinitions("lists operators but does not define them", remedy=remedy)
    found = read_data(_json(definitions))
    _compare(message, found)
    return found


def _json(definitions: bytes) -> object:
    try:
        return json.loads(definitions)
    except ValueError as error:
        raise DocumentError(f"contains definitions that are not JSON: {error}") from error


def _compare(message: OperatorSetProto, found: OperatorSet) -> None:
    """Check that the message and the definitions list the same operators.

    Raises:
        RepeatedOperator, Contradiction.
    """
    named = [each.op_type for each in message.operator]
    for name in named:
        if named.count(name) > 1:
            raise RepeatedOperator(f"{message.domain}.{name} is listed {named.count(name)} times")
    listed_set = (canonical_domain(message.domain), message.opset_version)
    if listed_set != (found.domain, found.opset_version):
        raise Contradiction(
            f"lists {listed_set[0]} {listed_set[1]}, but defines {found.domain} {found.opset_version}"
        )
    listed = {(each.op_type, each.since_version, each.status) for each in message.operator}
    defined = {(each.name, each.since_version, OperatorStatus.Value(each.status)) for each in found.in_force}
    for name, since, _ in sorted(listed ^ defined):
        raise Contradiction(
            f"{found.domain}.{name}:{since} differs between the operator list and the definitions"
        )
