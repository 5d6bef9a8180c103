"""Operator sets as `OperatorSetProto` messages, the form that ONNX's IR specification defines.

The message lists the operators in force, with their versions, status and description, and the bodies of
functions. It has no place for signatures. So the definitions travel as JSON in a field that the message does
not have; a plain reader passes over it, and keeps it when it writes the message.
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
"""The number of the field that holds the definitions; ONNX's own fields have small numbers."""
Listed = tuple[str, int, int]


def to_onnxopset(operators: OperatorSet) -> bytes:
    """The operator set as a serialized `OperatorSetProto`; equal sets give equal bytes."""
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
    """The operator set in a serialized `OperatorSetProto` with definitions.

    Raises:
        DocumentError: one of its kinds.
        DefinitionError: a definition is wrong.
    """
    try:
        message = OperatorSetProto.FromString(content)
    except (DecodeError, UnicodeDecodeError) as error:
        raise WrongMagic(f"is no serialized OperatorSetProto: {error}") from error
    if message.magic != MAGIC:
        raise WrongMagic(f"has the magic {message.magic!r}, not {MAGIC}")
    check_head(message.ir_version, message.domain, message.opset_version)
    definitions = find_bytes(content, DEFINITIONS)
    if definitions is None:
        remedy = "export it with opshift; the message alone has no signatures"
        raise NoDefinitions("lists operators and does not define them", remedy=remedy)
    found = read_data(_json(definitions))
    _compare(message, found)
    return found


def _json(definitions: bytes) -> object:
    try:
        return json.loads(definitions)
    except ValueError as error:
        raise DocumentError(f"has definitions that are not JSON: {error}") from error


def _compare(message: OperatorSetProto, found: OperatorSet) -> None:
    """Check that the message says of the set what its definitions say.

    Raises:
        RepeatedOperator, Contradiction.
    """
    named = [each.op_type for each in message.operator]
    for name in named:
        if named.count(name) > 1:
            raise RepeatedOperator(f"{message.domain}.{name} is listed {named.count(name)} times")
    head = (canonical_domain(message.domain), message.opset_version)
    if head != (found.domain, found.opset_version):
        raise Contradiction(f"is of {head[0]} {head[1]}, and defines {found.domain} {found.opset_version}")
    listed = {(each.op_type, each.since_version, each.status) for each in message.operator}
    defined = {(each.name, each.since_version, OperatorStatus.Value(each.status)) for each in found.in_force}
    for name, since, _ in sorted(listed ^ defined):
        raise Contradiction(f"{found.domain}.{name}:{since} is not listed as it is defined")
