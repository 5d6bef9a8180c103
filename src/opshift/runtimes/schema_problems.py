"""Problems of nodes that the schemas of a runtime do not allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from opshift.inference.infer_types import infer_types
from opshift.model.attributes import ATTRIBUTE_TYPES
from opshift.model.element_types import type_string
from opshift.model.types import short_type
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.runtimes.runtime import SchemaDifference
from opshift.runtimes.model_nodes import UNCHECKED, ModelNode

NO_LIMIT: Final = 2**31 - 1
"""Maximum number of values of a variadic parameter, as in the ONNX library: no limit in practice."""

NO_DIFFERENCE: Final = SchemaDifference()


def schema_problem(node: ModelNode, schemas: Mapping[str, SchemaDifference]) -> str:
    """Return the first reason why a schema does not allow a node; empty if it does, or without a definition.

    Args:
        node: the node.
        schemas: differences of the runtime's schemas from the definitions, by operator (`ai.onnx.Add`).
    """
    operator = node.operator
    if operator is None:
        return ""
    own = schemas.get(f"{node.domain}.{node.node.op_type}")
    if own is not None:
        return _first_problem(node, operator, own)
    # Most schemas equal the definition, so all runtimes share this result.
    if node.definition_problem is None:
        node.definition_problem = _first_problem(node, operator, NO_DIFFERENCE)
    return node.definition_problem


def _first_problem(node: ModelNode, operator: OperatorVersion, own: SchemaDifference) -> str:
    rules = (_deprecation_problems, _attribute_problems, _value_problems, _type_problems)
    return next((problem for rule in rules for problem in rule(node, operator, own)), "")


def _deprecation_problems(
    _node: ModelNode, operator: OperatorVersion, _own: SchemaDifference
) -> Iterator[str]:
    # GroupNormalization 18, which a later version of the same operator replaces, is accepted.
    if operator.deprecation and operator.deprecation.replaced_by != operator.name:
        yield f"the operator is deprecated since version {operator.since_version}"


def _attribute_problems(node: ModelNode, operator: OperatorVersion, own: SchemaDifference) -> Iterator[str]:
    given = node.node.attributes
    for name, value in given.items():
        known = operator.attributes.get(name)
        if name in own.lacks or not (known or name in own.adds or name.startswith(UNCHECKED)):
            yield f"it has no attribute `{name}`"
        elif known and getattr(value, "type", 0) not in (0, ATTRIBUTE_TYPES[known.type].number):
            yield f"the attribute `{name}` must be {known.type}"
    for name, attribute in operator.attributes.items():
        if (attribute.required or name in own.requires) and name not in given and name not in own.lacks:
            yield f"it requires the attribute `{name}`"


def _value_problems(node: ModelNode, operator: OperatorVersion, own: SchemaDifference) -> Iterator[str]:
    for kind, names, formals, limits in (
        ("inputs", node.node.inputs, operator.inputs, own.inputs),
        ("outputs", node.node.outputs, operator.outputs, own.outputs),
    ):
        least, most = limits or parameter_count(formals)
        if not least <= len(names) <= most:
            expected = str(least) if least == most else f"{least} to {most}"
            yield f"it has {expected} {kind}, not {len(names)}"
        for name, formal in zip(names, formals, strict=False):
            if not name and (formal.option == "single" or (kind == "inputs" and formal.name in own.requires)):
                yield f"it requires `{formal.name}`"


def parameter_count(parameters: Sequence[Parameter]) -> tuple[int, int]:
    """Return the minimum and the maximum number of values that parameters accept."""
    least = max((number for number, each in enumerate(parameters, 1) if each.option == "single"), default=0)
    if parameters and parameters[-1].option == "variadic":
        return max(least, len(parameters) - 1 + parameters[-1].min_arity), NO_LIMIT
    return least, len(parameters)


def _type_problems(node: ModelNode, operator: OperatorVersion, own: SchemaDifference) -> Iterator[str]:
    mixed = {each.name for each in (*operator.inputs, *operator.outputs) if not each.homogeneous}
    bound: dict[str, str] = {}
    for value, name, variable in node.parameters():
        element_type = node.scope.element_type(value)
        if element_type is None:
            continue
        found = type_string(element_type)
        accepted = own.types.get(name) or own.types.get(variable)
        accepted = accepted or operator.type_constraints.get(variable, (variable,))
        if found not in accepted:
            yield f"`{name}` must be {' or '.join(map(short_type, accepted))}, not {short_type(found)}"
        elif name not in mixed and bound.setdefault(variable, found) != found:
            yield f"type variable {variable} is both {short_type(bound[variable])} and {short_type(found)}"
    yield from _declared_type_problems(node, operator)


def _declared_type_problems(node: ModelNode, operator: OperatorVersion) -> Iterator[str]:
    """Yield a problem for each output whose declared type differs from the inferred type."""
    declared = [node.scope.declared_type(each) if each else None for each in node.node.outputs]
    if any(declared):
        for stated, found in zip(declared, infer_types(node.node, operator, node.scope), strict=True):
            if stated and found and stated != found:
                yield f"an output of type {short_type(found)} is declared as {short_type(stated)}"
