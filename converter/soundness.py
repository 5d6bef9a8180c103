"""Whether a node has what its operator's definition asks for; only then may a step rely on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opshift.adapters.bodies import Graph
from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.tensors import can_pack
from opshift.converter.errors import InvalidModel
from opshift.registry.models import UNBOUNDED, OperatorVersion

MAYBE_UNSOUND = "check the model with opshift check; if the node is sound, this is a bug of opshift"
ATTRIBUTE_TYPES = {
    "FLOAT": 1, "INT": 2, "STRING": 3, "TENSOR": 4, "GRAPH": 5, "FLOATS": 6, "INTS": 7, "STRINGS": 8,
    "TENSORS": 9, "GRAPHS": 10, "SPARSE_TENSOR": 11, "SPARSE_TENSORS": 12, "TYPE_PROTO": 13,
    "TYPE_PROTOS": 14,
}  # fmt: skip
"""`AttributeProto.AttributeType`."""
_KINDS: dict[str, Callable[[Any], bool]] = {
    "FLOAT": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "INT": lambda value: type(value) is int and -(2**63) <= value < 2**63,
    "STRING": lambda value: isinstance(value, bytes | str),
    "TENSOR": lambda value: hasattr(value, "raw_data") or (isinstance(value, Tensor) and can_pack(value)),
    "GRAPH": lambda value: isinstance(value, Graph) or hasattr(value, "node"),
}


def require_sound(node: Node, operator: OperatorVersion, older: Sequence[OperatorVersion] = ()) -> None:
    """Check how many inputs and outputs a node has, and its attributes.

    Of a text that the definition chooses from some, one that only `older` versions know will do: runtimes
    go on to take it, and so do the steps.

    Raises:
        CannotConvert: it has too few, too many, one attribute twice, or something else.
        InvalidModel: a name is no text.
    """
    require_text((*node.inputs, *node.outputs, *node.attributes))
    _require_count("input", node.inputs, operator.min_input, operator.max_input, operator)
    _require_count("output", node.outputs, 0, operator.max_output, operator)
    if node.repeated_attribute is not None:
        raise _unsound(f"states attribute {node.repeated_attribute!r} twice")
    for name in operator.required_attributes:
        if name not in node.attributes:
            raise _unsound(f"has no attribute {name!r}, which {operator.id} requires")
    for name, stated in node.attributes.items():
        declared = operator.attributes.get(name)
        if declared and not _has_type(stated, declared.type, node, name):
            raise _unsound(f"attribute {name!r} is not of type {declared.type}")
        if declared and declared.type == "STRING" and declared.values is not None:
            _require_choice(node, name, operator, older)


def require_text(names: Iterable[str]) -> str:
    """All names as one text.

    Some releases of protobuf hand over as bytes what is not UTF-8, and take no bytes back.

    Raises:
        InvalidModel: a name is no text.
    """
    try:
        return "".join(names)
    except TypeError as error:
        raise InvalidModel("a name in the model is not UTF-8 text") from error


def _require_count(kind: str, names: Sequence[str], least: int, most: int, operator: OperatorVersion) -> None:
    if least <= len(names) <= most or (len(names) > most and not any(names[most:])):
        return
    counts = f"{least} or more" if most == UNBOUNDED else f"{least} to {most}"
    raise _unsound(f"has {len(names)} {kind}s; {operator.id} has {counts}")


def _require_choice(
    node: Node, name: str, operator: OperatorVersion, older: Sequence[OperatorVersion]
) -> None:
    stated = node.attributes[name]
    text = "" if stated.ref_attr_name else stated.s.decode(errors="replace")
    if not text:
        return
    versions = (each.attributes.get(name) for each in (operator, *older))
    if not any(each.allows(text) for each in versions if each is not None):
        raise _unsound(f"attribute {name!r} is {text!r}, which {operator.id} does not know")


def _has_type(stated: Any, kind: str, node: Node, name: str) -> bool:
    if stated.type == ATTRIBUTE_TYPES[kind]:
        return True
    if stated.ref_attr_name or not (stated.type or stated.ByteSize() > 2 + len(name)):
        return True
    return _holds(node.attribute(name), kind)


def _holds(value: Any, kind: str) -> bool:
    if not kind.endswith("S"):
        return kind not in _KINDS or _KINDS[kind](value)
    element = _KINDS.get(kind.removesuffix("S"), lambda value: True)
    return isinstance(value, Sequence) and not isinstance(value, bytes | str) and all(map(element, value))


def require_writable(node: Node, operator: OperatorVersion) -> None:
    """Check the attributes that steps gave a node.

    Raises:
        CannotConvert: one is not the operator's, or it cannot hold the value.
    """
    for name, value in node.attributes.items():
        declared = operator.attributes.get(name)
        if hasattr(value, "ref_attr_name") or (declared and _holds(value, declared.type)):
            continue
        reason = f"attribute {name!r} of {operator.id} would have to be {value!r}"
        raise CannotConvert(reason, remedy=MAYBE_UNSOUND)


def _unsound(reason: str) -> CannotConvert:
    return CannotConvert(reason, remedy="correct the node; opshift check tells what it needs")
