"""Validate single nodes against their operator versions, because steps rely on valid nodes."""

from collections.abc import Callable, Sequence
from typing import Any

from opshift.inference.facts import Facts
from opshift.inference.node_problems import axis_problem, choice_problem
from opshift.model.attributes import ATTRIBUTE_TYPES
from opshift.model.errors import CannotConvert
from opshift.model.message_text import count_text
from opshift.model.node import Graph, Node, Tensor
from opshift.model.node_key import require_utf8_names
from opshift.model.tensors import can_pack_tensor
from opshift.registry.models import UNBOUNDED, OperatorVersion

PRIVATE_PREFIX = "__"
"""Prefix of attributes without effect, which no operator defines."""

CHECK_MODEL_REMEDY = "check the model with opshift check; if the node is valid, this is a bug in opshift"

_TYPE_CHECKS: dict[str, Callable[[Any], bool]] = {
    "FLOAT": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "INT": lambda value: type(value) is int and -(2**63) <= value < 2**63,
    "STRING": lambda value: isinstance(value, bytes | str),
    "TENSOR": lambda value: (
        hasattr(value, "raw_data") or (isinstance(value, Tensor) and can_pack_tensor(value))
    ),
    "GRAPH": lambda value: isinstance(value, Graph) or hasattr(value, "node"),
}


def validate_node(node: Node, operator: OperatorVersion, older: Sequence[OperatorVersion] = ()) -> None:
    """Validate the number of inputs and outputs of a node, and its attributes.

    An attribute with a list of allowed values, such as 0 and 1, may also have a value that only an older
    version allows: runtimes and steps accept it.

    Raises:
        CannotConvert: the node does not match the operator version.
        InvalidModel: a name is not UTF-8 text.
    """
    require_utf8_names((*node.inputs, *node.outputs, *node.attributes))
    validate_counts(node, operator)
    if node.duplicate_attribute is not None:
        raise _invalid_node(f"has attribute {node.duplicate_attribute!r} twice")
    for name in operator.required_attributes:
        if name not in node.attributes:
            raise _invalid_node(f"lacks attribute {name!r}, which {operator.id} requires")
    for name, attribute in node.attributes.items():
        declared = operator.attributes.get(name)
        if declared is None:
            # Experimental operators may have any attribute: ATen has those of the function that it calls.
            if not name.startswith(PRIVATE_PREFIX) and operator.status == "STABLE":
                raise _invalid_node(f"{operator.id} has no attribute {name!r}")
        elif not _has_type(attribute, declared.type, node, name):
            raise _invalid_node(f"attribute {name!r} is not of type {declared.type}")
        elif declared.values is not None and not attribute.ref_attr_name:
            _require_choice(node, name, operator, older)
    problem = choice_problem(operator, node.attributes.keys())
    if problem:
        raise _invalid_node(problem)


def validate_counts(node: Node, operator: OperatorVersion) -> None:
    """Raise CannotConvert if a node has too few or too many inputs, or too many outputs."""
    _require_count("input", node.inputs, operator.min_input, operator.max_input, operator)
    _require_count("output", node.outputs, 0, operator.max_output, operator)


def _require_count(kind: str, names: Sequence[str], least: int, most: int, operator: OperatorVersion) -> None:
    # Trailing empty names denote omitted values, so their number may exceed the maximum.
    if least <= len(names) <= most or (len(names) > most and not any(names[most:])):
        return
    several = f"{least} or more" if most == UNBOUNDED else f"{least} to {most}"
    counts = least if least == most else several
    raise _invalid_node(f"has {count_text(len(names), kind)}; {operator.id} expects {counts}")


def _require_choice(
    node: Node, name: str, operator: OperatorVersion, older: Sequence[OperatorVersion]
) -> None:
    stated = node.attribute(name)
    value = stated.decode(errors="replace") if isinstance(stated, bytes) else stated
    if isinstance(value, tuple) or value == "":
        return
    versions = (each.attributes.get(name) for each in (operator, *older))
    if not any(each.allows(value) for each in versions if each is not None):
        raise _invalid_node(f"attribute {name!r} is {value!r}, which {operator.id} does not support")


def validate_axes(node: Node, operator: OperatorVersion, facts: Facts) -> None:
    """Raise CannotConvert if an axis of a node is out of range.

    Only axes of inputs whose rank is already known are checked: a step that reads an axis has queried the
    rank, and inference for other steps would take too much time.
    """
    problem = axis_problem(node, operator, facts, facts.rank_so_far)
    if problem:
        raise _invalid_node(problem)


def _has_type(attribute: Any, kind: str, node: Node, name: str) -> bool:
    if attribute.type == ATTRIBUTE_TYPES[kind].number:
        return True
    # Attribute references have no value. An attribute without type is accepted if only its name is set.
    if attribute.ref_attr_name or not (attribute.type or attribute.ByteSize() > 2 + len(name)):
        return True
    return _value_has_type(node.attribute(name), kind)


def _value_has_type(value: Any, kind: str) -> bool:
    if not kind.endswith("S"):
        return kind not in _TYPE_CHECKS or _TYPE_CHECKS[kind](value)
    element = _TYPE_CHECKS.get(kind.removesuffix("S"), lambda value: True)
    return isinstance(value, Sequence) and not isinstance(value, bytes | str) and all(map(element, value))


def validate_emitted_attributes(node: Node, operator: OperatorVersion) -> None:
    """Raise CannotConvert if an operator lacks an attribute of a node, or a new value has a wrong type."""
    for name, value in node.attributes.items():
        declared = operator.attributes.get(name)
        if declared is None:
            reason = f"{operator.id} does not define the attribute {name!r}"
        elif hasattr(value, "ref_attr_name") or _value_has_type(value, declared.type):
            continue
        else:
            reason = f"attribute {name!r} of {operator.id} cannot hold {value!r}"
        raise CannotConvert(reason, "node.invalid", remedy=CHECK_MODEL_REMEDY)


def _invalid_node(reason: str) -> CannotConvert:
    return CannotConvert(
        reason, "node.invalid", remedy="correct the node; opshift check lists all violations"
    )
