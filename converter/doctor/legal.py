"""For which opsets a node is legal as it stands."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain
from typing import Any

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.converter.scope import Scope
from opshift.converter.soundness import ATTRIBUTE_TYPES, require_sound
from opshift.registry.catalogue import Registry
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.names import canonical_domain

Types = tuple[str | None, ...]
"""Of each input and output: an element type, a type string, or `None` if it is not known."""
INT, STRING = 2, 3
INTERNAL = "__"
"""Attributes that start so are a tool's own, and no operator's."""


class Judge:
    """Judges nodes; those of one operator that differ in nothing that counts are judged once."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[Hashable, frozenset[int]] = {}

    def opsets(self, node: Node, scope: Scope) -> frozenset[int] | None:
        """The opsets of its domain at which a node is legal; `None` if the registry lacks the domain."""
        domain = canonical_domain(node.domain)
        if domain not in self._registry.domains():
            return None
        types = _types(node, scope)
        key = _form(node, types)
        if key not in self._known:
            legal = (
                opset
                for version, opsets in self._versions(node.op_type, domain)
                if not fault(node, types, version)
                for opset in opsets
            )
            self._known[key] = frozenset(legal)
        return self._known[key]

    def why_not(self, node: Node, scope: Scope, opset: int) -> str:
        """Why a node is not legal at an opset; empty if it is."""
        domain = canonical_domain(node.domain)
        for version, opsets in self._versions(node.op_type, domain):
            if opset in opsets:
                return fault(node, _types(node, scope), version)
        found = self._registry.at(node.op_type, opset, domain)
        gone = f"{node.op_type} is deprecated" if found else f"there is no {node.op_type}"
        return f"{gone} in opset {opset} of {domain}"

    def _versions(self, op_type: str, domain: str) -> Iterator[tuple[OperatorVersion, range]]:
        """Each version of an operator, and the opsets at which it is in force.

        The last version may only say that the operator is deprecated. One that newer ones follow was
        deprecated after models were made with it.
        """
        operator = self._registry.operator(op_type, domain)
        versions = operator.versions if operator else ()
        ends = [each.since_version for each in versions[1:]] + [self._registry.newest_opset(domain) + 1]
        for version, end in zip(versions, ends, strict=False):
            if version.deprecation and version is versions[-1]:
                return
            last = min(end, version.removal.removed_in) if version.removal else end
            yield version, range(version.since_version, last)


def fault(node: Node, types: Types, version: OperatorVersion) -> str:
    """Why a node is no legal node of an operator version; empty if it is."""
    try:
        require_sound(node, version)
    except CannotConvert as error:
        return error.reason
    faults = chain(_faults_of_attributes(node, version), _faults_of_values(node, types, version))
    return next(faults, "")


def _faults_of_attributes(node: Node, version: OperatorVersion) -> Iterator[str]:
    for name, stated in node.attributes.items():
        declared = version.attributes.get(name)
        if declared is None:
            if not name.startswith(INTERNAL):
                yield f"{version.id} has no attribute {name!r}"
        elif stated.type not in (0, ATTRIBUTE_TYPES[declared.type]):
            yield f"attribute {name!r} of {version.id} is {declared.type}"
        elif stated.type in (INT, STRING) and not stated.ref_attr_name:
            value = stated.i if stated.type == INT else stated.s.decode("utf-8", "replace")
            if not declared.allows(value):
                yield f"attribute {name!r} of {version.id} cannot be {value!r}"


def _faults_of_values(node: Node, types: Types, version: OperatorVersion) -> Iterator[str]:
    count = len(node.inputs)
    yield from _misfits(version.inputs, node.inputs, types[:count], version)
    # Constant-1 makes floats by its definition; the tools of its day wrote integers too, and read them.
    if version.name != "Constant":
        yield from _misfits(version.outputs, node.outputs, types[count:], version)


def _misfits(
    formals: tuple[Parameter, ...], names: Sequence[str], types: Types, version: OperatorVersion
) -> Iterator[str]:
    is_open = bool(formals) and formals[-1].option == "variadic"
    if len(names) > len(formals) and not is_open:
        yield f"{len(names)} values are listed where {version.id} has {len(formals)}"
        return
    for position, (name, found) in enumerate(zip(names, types, strict=True)):
        formal = formals[min(position, len(formals) - 1)]
        spelled = f"tensor({found})" if found and "(" not in found else found
        if not name and formal.option == "single":
            yield f"{formal.name!r} of {version.id} cannot be left out"
        elif spelled and spelled not in version.types_of(formal):
            yield f"{name!r} is {spelled}, which {version.id} does not have for {formal.name!r}"


def _types(node: Node, scope: Scope) -> Types:
    """Of its outputs only what is stated: what is inferred follows from the opset that is in question."""
    inputs = (scope.element_type(name) if name else None for name in node.inputs)
    return (*inputs, *map(scope.stated_type, node.outputs))


def _form(node: Node, types: Types) -> Hashable:
    """All of a node that its legality depends on."""
    present = tuple(map(bool, (*node.inputs, *node.outputs)))
    attributes = tuple(map(_stated, node.attributes.values()))
    return (node.domain, node.op_type, len(node.inputs), present, types, attributes)


def _stated(attribute: Any) -> Hashable:
    value = attribute.i if attribute.type == INT else attribute.s if attribute.type == STRING else None
    untyped = None if attribute.type else attribute.SerializeToString()
    return (attribute.name, attribute.type, attribute.ref_attr_name, value, untyped)
