"""Element types that can occur in a model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from operator import attrgetter
from typing import Any

from opshift.inference.infer_types import determines_type, type_from_attributes, type_of_constant
from opshift.inference.scope import Scope
from opshift.model.attributes import FLOAT, INT, TENSOR
from opshift.model.element_types import BY_NUMBER, element_names
from opshift.model.graphs import ContainerProto, is_graph
from opshift.model.messages import NodeProto
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.types import type_to_string
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.registry import Registry


class ElementTypes:
    """Search for the element types that can occur in the graphs and functions of a model.

    Declarations and operator definitions contain most types; nodes are read only to find further types.
    """

    def __init__(self, scopes: Iterable[Scope], operators: Collection[tuple[str, str]]) -> None:
        """Prepare the search; `operators` has domain and op_type of every node."""
        self._found: set[str] = set()
        self._others = _element_types_in(list(scopes), frozenset(operators))

    def among(self, types: Set[str], limit: int) -> Set[str]:
        """Return the members of `types` that can occur in the model; stop after finding `limit`."""
        while len(types & self._found) < limit and (more := next(self._others, None)) is not None:
            self._found |= more
        return types & self._found


_read_type = attrgetter("name", "type", "ref_attr_name", "i", "f", "t.data_type")
"""Function that reads the fields of an attribute that may determine the type of an output."""

MAX_NODE_KEYS = 1024
"""Maximum number of node keys with cached types, for each set of operators; it bounds the memory."""

_NodeKey = tuple[Any, ...]
"""Domain and op_type of a node, and the result of `_read_type` for each attribute."""


def _is_complete(key: _NodeKey) -> bool:
    """Return whether all nodes with this key have the same types: `_read_type` omits lists and strings."""
    return all(attribute[1] in (FLOAT, INT, TENSOR) for attribute in key[2:])


class _OperatorTypes:
    """Types that outputs of operators can have independently of inputs.

    Attributes:
        types: types of operators that have the same types for all nodes.
        node_dependent: operators with types that depend on attributes or subgraphs of their nodes.
    """

    def __init__(
        self, types: frozenset[str], node_dependent: Mapping[tuple[str, str], OperatorVersion]
    ) -> None:
        self.types = types
        self.node_dependent = node_dependent
        self._types_of_nodes: dict[_NodeKey, frozenset[str]] = {}

    def types_of_node(self, key: _NodeKey, proto: NodeProto) -> frozenset[str]:
        """Return the types of a node of one of the `node_dependent` operators; `key` describes it."""
        found = self._types_of_nodes.get(key)
        if found is None:
            found = _types_of_node(Node.from_proto(proto), self.node_dependent[key[:2]])
            if _is_complete(key) and len(self._types_of_nodes) < MAX_NODE_KEYS:
                self._types_of_nodes[key] = found
        return found


def _element_types_in(scopes: Sequence[Scope], operators: frozenset[tuple[str, str]]) -> Iterator[Set[str]]:
    """Yield the element types from declarations and operator definitions, and then from nodes."""
    types_at: dict[int, _OperatorTypes] = {}
    """Result of `_types_of_operators` by `id` of the opset imports, which many functions and graphs share."""
    for scope in scopes:
        if id(scope.opsets) not in types_at:
            imports = frozenset(scope.opsets.items())
            types_at[id(scope.opsets)] = _types_of_operators(scope.registry, imports, operators)
        yield types_at[id(scope.opsets)].types.union(_declared_types(scope.container))
    for scope in scopes:
        found, known = types_at[id(scope.opsets)], set[_NodeKey]()
        for identity, proto in _nodes_of(scope, found.node_dependent) if found.node_dependent else ():
            key = *identity, *map(_read_type, proto.attribute[:])
            if key not in known:
                if _is_complete(key):
                    known.add(key)
                yield found.types_of_node(key, proto)


# Cached, because without the cache this takes 6 % of a conversion of 100 nodes.
@lru_cache(maxsize=256)
def _types_of_operators(
    registry: Registry, opsets: frozenset[tuple[str, int]], operators: frozenset[tuple[str, str]]
) -> _OperatorTypes:
    imports, types = dict(opsets), set[str]()
    node_dependent: dict[tuple[str, str], OperatorVersion] = {}
    for domain, op_type in operators:
        operator = registry.known_or_removed_at(op_type, imports.get(domain or DEFAULT_DOMAIN, 0), domain)
        introduced = _types_of_operator(operator) if operator else frozenset[str]()
        if operator and introduced is None:
            node_dependent[domain, op_type] = operator
        types |= introduced or frozenset()
    return _OperatorTypes(frozenset(types), node_dependent)


def _nodes_of(
    scope: Scope, operators: Collection[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], NodeProto]]:
    """Yield `((domain, op_type), node)` for each node of the given operators."""
    nodes, op_types = scope.nodes, {op_type for _, op_type in operators}
    if scope.has_node_records:  # reading records takes a third of the time of reading nodes
        found = ((*record[1:3], nodes[record[0]]) for record in scope.node_records if record[2] in op_types)
    else:
        found = ((node.domain, node.op_type, node) for node in nodes if node.op_type in op_types)
    for domain, op_type, node in found:
        if (domain, op_type) in operators:
            yield (domain, op_type), node


def _types_of_operator(operator: OperatorVersion) -> frozenset[str] | None:
    """Return the types that outputs can have independently of inputs; `None` if they depend on the node."""
    if operator.holds_graphs or not all(_is_plain(output, operator) for output in operator.outputs):
        return None
    return _types_of_node(Node(operator.name, (), (), {}, operator.domain), operator)


def _types_of_node(node: Node, operator: OperatorVersion) -> frozenset[str]:
    return frozenset(name for output in operator.outputs for name in _types_of_output(node, operator, output))


def _is_plain(output: Parameter, operator: OperatorVersion) -> bool:
    """Return whether the type of an output is independent of the node's attributes."""
    return not output.type_attributes and operator.name != "Constant"


def _types_of_output(node: Node, operator: OperatorVersion, output: Parameter) -> Iterator[str]:
    """Yield the element types that an output can have independently of the types of the inputs."""
    types = operator.types_of(output) if output.homogeneous else ()
    if len(types) > 1 and any(determines_type(formal, output) for formal in operator.inputs):
        types = ()
    named = None
    if not node.has_attribute_references and not _is_plain(output, operator):
        named = type_of_constant(node) or type_from_attributes(operator, node, output)
    for each in (named,) if named else (*types, output.absent_type or ""):
        yield from element_names(each)


_elem_type = attrgetter("type.tensor_type.elem_type")


def _declared_types(container: ContainerProto) -> Iterator[str]:
    """Yield the element types that a graph or function declares for its values."""
    values = [*container.value_info]
    numbers: set[int] = set()
    if is_graph(container):
        values += (*container.input, *container.output)
        numbers.update(each.data_type for each in container.initializer)
        numbers.update(each.values.data_type for each in container.sparse_initializer)
    numbers.update(map(_elem_type, values))
    yield from (BY_NUMBER[number].name for number in numbers if number in BY_NUMBER)
    if 0 in numbers:
        # 0 means no dense tensor: search the types of sequences, maps and sparse tensors.
        for text in {type_to_string(value.type) for value in values if not _elem_type(value)}:
            yield from element_names(text or "")
