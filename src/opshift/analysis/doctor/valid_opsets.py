"""Opsets at which a node is valid."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Final

from opshift.inference.scope import Scope
from opshift.model.attributes import ATTRIBUTE_TYPES, INT, STRING
from opshift.model.element_types import type_string
from opshift.model.errors import CannotConvert
from opshift.model.messages import AttributeProto
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.types import Shape
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.registry import Registry
from opshift.rewriting.routes import replaced_from
from opshift.rewriting.validation import validate_node

Shapes = Sequence[Shape | None]
"""Known shapes of the inputs of a node."""


def shape_violation(node: Node, shapes: Shapes, version: OperatorVersion) -> str:
    """Return the reason why an operator version does not allow the shapes of the inputs, or an empty text."""
    rule = SHAPE_VIOLATIONS.get((canonical_domain(node.domain), node.op_type))
    return rule(node, shapes, version) if rule and shapes else ""


def _group_normalization(node: Node, shapes: Shapes, version: OperatorVersion) -> str:
    data, *others = shapes
    groups = node.attribute("num_groups", 0)
    channels = data[1] if data is not None and len(data) > 1 else None
    is_per_group = version.since_version < 21
    wanted = groups if is_per_group else channels
    for name, shape in zip(node.inputs[1:3], others, strict=False):
        size = shape[0] if shape is not None and len(shape) == 1 else None
        if size is not None and wanted is not None and size != wanted:
            unit = "group" if is_per_group else "channel"
            return f"{name!r} has {size} elements, where {version.id} requires one per {unit} ({wanted})"
    return ""


def _broadcast(node: Node, shapes: Shapes, version: OperatorVersion) -> str:
    is_limited = version.since_version < (8 if node.op_type in VARIADIC else 7)
    if not is_limited or node.attribute("broadcast", 0):
        return ""
    for one, other in pairwise(shapes):
        if one is None or other is None:
            continue
        sizes = zip(one, other, strict=False)
        if len(one) != len(other) or any(None not in pair and pair[0] != pair[1] for pair in sizes):
            return f"the shapes of its inputs differ, which {version.id} does not allow"
    return ""


def _scale_rank(node: Node, shapes: Shapes, version: OperatorVersion) -> str:
    scale = shapes[1] if len(shapes) > 1 else None
    if scale is None or version.since_version >= 13 or all(size == 1 for size in scale):
        return ""
    return f"{node.inputs[1]!r} is not a scalar, which {version.id} requires"


VARIADIC: Final = ("Max", "Mean", "Min", "Sum")

_BINARY: Final = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")

SHAPE_VIOLATIONS: Final[dict[tuple[str, str], Callable[[Node, Shapes, OperatorVersion], str]]] = {
    (DEFAULT_DOMAIN, name): rule
    for rule, names in (
        (_group_normalization, ("GroupNormalization",)),
        (_broadcast, (*VARIADIC, *_BINARY)),
        (_scale_rank, ("DequantizeLinear", "QuantizeLinear")),
    )
    for name in names
}
"""Rules by domain and operator."""


NodeTypes = tuple[str | None, ...]
"""For each input and output: an element type, a type string, or `None` if it is unknown."""


class OpsetValidity:
    """Validity of nodes at the opsets of a registry.

    Results are cached by the properties that validity depends on, because models repeat similar nodes.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._cache: dict[Hashable, frozenset[int]] = {}

    def opsets(self, node: Node, scope: Scope) -> frozenset[int] | None:
        """Return the opsets at which a node is valid, or `None` if runtimes accept it at any opset.

        Runtimes accept a nonstandard operator below the first opset that defines it.
        """
        domain = canonical_domain(node.domain)
        operator = self._registry.operator(node.op_type, domain)
        is_nonstandard = domain == DEFAULT_DOMAIN and node.op_type in self._registry.releases.nonstandard
        if self._registry.is_open(domain) or (is_nonstandard and operator is None):
            return None
        types = _types(node, scope)
        shapes = _shapes(node, scope)
        key = _cache_key(node, types), shapes
        if key not in self._cache:
            first = operator.versions[0].since_version if is_nonstandard and operator else 1
            valid = set(range(1, first))
            for version, opsets in self._versions(node.op_type, domain):
                if not (first_violation(node, types, version) or shape_violation(node, shapes, version)):
                    valid.update(opsets)
            self._cache[key] = frozenset(valid)
        return self._cache[key]

    def replaced_from(self, node: Node, valid: frozenset[int]) -> int | None:
        """Return the opset from which other operators replace a node, given the opsets at which it is valid.

        A node means what the last version before the replacement defines, so it must be valid there.
        """
        operator = self._registry.operator(node.op_type, canonical_domain(node.domain))
        first = replaced_from(operator) if operator else None
        return first if first and first - 1 in valid else None

    def violation(self, node: Node, scope: Scope, opset: int) -> str:
        """Return the reason why a node is invalid at an opset; empty if it is valid."""
        domain = canonical_domain(node.domain)
        for version, opsets in self._versions(node.op_type, domain):
            if opset in opsets:
                violation = first_violation(node, _types(node, scope), version)
                return violation or shape_violation(node, _shapes(node, scope), version)
        exists = self._registry.has(node.op_type, opset, domain)
        reason = f"{node.op_type} is deprecated" if exists else f"{node.op_type} does not exist"
        return f"{reason} in opset {opset} of {domain}"

    def _versions(self, op_type: str, domain: str) -> Iterator[tuple[OperatorVersion, range]]:
        """Yield the versions of an operator that models may use, each with its opsets.

        A deprecated last version is skipped, because it may do nothing but deprecate the operator. Earlier
        deprecated versions are included: models were written with them before their deprecation.
        """
        operator = self._registry.operator(op_type, domain)
        versions = operator.versions if operator else ()
        ends = [each.since_version for each in versions[1:]] + [self._registry.newest_opset(domain) + 1]
        for version, end in zip(versions, ends, strict=False):
            if version.deprecation and end == ends[-1]:
                return
            last = min(end, version.removal.removed_in) if version.removal else end
            yield version, range(version.since_version, last)


def first_violation(node: Node, types: NodeTypes, version: OperatorVersion) -> str:
    """Return the first violation of an operator version's definition by a node; empty if it is valid."""
    try:
        validate_node(node, version)
    except CannotConvert as error:
        return error.reason
    count = len(node.inputs)
    violations = [
        _attribute_violations(node, version),
        _value_violations(version.inputs, node.inputs, types[:count], version),
    ]
    # Constant-1 is defined for floats only, but tools of that time wrote integer constants and read them.
    if version.name != "Constant":
        violations.append(_value_violations(version.outputs, node.outputs, types[count:], version))
    return next(chain.from_iterable(violations), "")


def _attribute_violations(node: Node, version: OperatorVersion) -> Iterator[str]:
    for name, attribute in node.attributes.items():
        declared = version.attributes.get(name)
        if declared is None:
            continue
        if attribute.type not in (0, ATTRIBUTE_TYPES[declared.type].number):
            yield f"attribute {name!r} has the wrong type: {version.id} requires {declared.type}"
        elif attribute.type in (INT, STRING) and not attribute.ref_attr_name:
            value = attribute.i if attribute.type == INT else attribute.s.decode("utf-8", "replace")
            if not declared.allows(value):
                yield f"attribute {name!r} has the value {value!r}, which {version.id} does not allow"


def _value_violations(
    formals: tuple[Parameter, ...], names: Sequence[str], types: NodeTypes, version: OperatorVersion
) -> Iterator[str]:
    is_variadic = bool(formals) and formals[-1].option == "variadic"
    if len(names) > len(formals) and not is_variadic:
        yield f"the node has {len(names)} values where {version.id} allows at most {len(formals)}"
        return
    for position, (name, known_type) in enumerate(zip(names, types, strict=True)):
        formal = formals[min(position, len(formals) - 1)]
        known = type_string(known_type) if known_type else None
        if not name and formal.option == "single":
            yield f"{formal.name!r} is omitted, but {version.id} requires it"
        elif known and known not in version.types_of(formal):
            yield f"{name!r} is {known}, which {version.id} does not allow for {formal.name!r}"


def _types(node: Node, scope: Scope) -> NodeTypes:
    """Return the known types of a node's inputs and outputs.

    Only declared types of outputs count, because inference of outputs depends on the opset to be determined.
    """
    inputs = (scope.element_type(name) if name else None for name in node.inputs)
    return (*inputs, *map(scope.declared_type, node.outputs))


def _shapes(node: Node, scope: Scope) -> tuple[Shape | None, ...]:
    """Return the known shapes of a node's inputs if versions of its operator differ in them."""
    if (canonical_domain(node.domain), node.op_type) not in SHAPE_VIOLATIONS:
        return ()
    return tuple(scope.shape(name) if name else None for name in node.inputs)


def _cache_key(node: Node, types: NodeTypes) -> Hashable:
    """Return the properties of a node that its validity depends on."""
    present = tuple(map(bool, (*node.inputs, *node.outputs)))
    attributes = tuple(map(_attribute_key, node.attributes.values()))
    return (node.domain, node.op_type, len(node.inputs), present, types, attributes)


def _attribute_key(attribute: AttributeProto) -> Hashable:
    value = attribute.i if attribute.type == INT else attribute.s if attribute.type == STRING else None
    # without a type, any field may hold the value, so the whole attribute counts
    untyped = None if attribute.type else attribute.SerializeToString()
    return (attribute.name, attribute.type, attribute.ref_attr_name, value, untyped)
