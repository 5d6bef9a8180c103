"""Element types that can occur in a model."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from operator import attrgetter

from opshift.inference.infer_types import determines_type, type_from_attributes, type_of_constant
from opshift.inference.scope import Scope
from opshift.model.attributes import FLOAT, INT, TENSOR
from opshift.model.element_types import BY_NUMBER, element_names
from opshift.model.graphs import ContainerProto, is_graph
from opshift.model.messages import AttributeProto, NodeProto
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.types import type_to_string
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.registry import Registry


class ElementTypes:
    """Search for the element types that occur in the graphs and functions of a model.

    Declarations and operator definitions contain most types; nodes are read only to find further types.
    """

    def __init__(self, scopes: Iterable[Scope], operators: Collection[tuple[str, str]]) -> None:
        """Prepare the search; `operators` has domain and op_type of every node."""
        self._found: set[str] = set()
        self._others = _element_types_in(list(scopes), frozenset(operators))

    def among(self, types: Set[str], limit: int) -> Set[str]:
        """Return the elements of `types` that occur in the model; stop after finding `limit` of them."""
        while len(types & self._found) < limit and (more := next(self._others, None)) is not None:
            self._found |= more
        return types & self._found


def _element_types_in(scopes: Sequence[Scope], operators: frozenset[tuple[str, str]]) -> Iterator[Set[str]]:
    """Yield the element types from declarations and operator definitions, and then from nodes."""
    types_at: dict[int, tuple[frozenset[str], Mapping[tuple[str, str], OperatorVersion]]] = {}
    """Result of `_types_of_operators` by `id` of the opset imports, which many functions and graphs share."""
    for scope in scopes:
        if id(scope.opsets) not in types_at:
            imports = frozenset(scope.opsets.items())
            types_at[id(scope.opsets)] = _types_of_operators(scope.registry, imports, operators)
        yield types_at[id(scope.opsets)][0].union(_declared_types(scope.container))
    types_by_node: dict[tuple[object, ...], frozenset[str]] = {}
    """Element types by operator version and attributes: the many Constant and Cast nodes have few types."""
    for scope in scopes:
        _, node_dependent = types_at[id(scope.opsets)]
        for identity, proto in _nodes_of(scope, node_dependent) if node_dependent else ():
            version = node_dependent[identity]
            key = version.id, *map(_declared_type, proto.attribute[:])
            if key not in types_by_node or None in key:
                types_by_node[key] = _types_of_node(Node.from_proto(proto), version)
                yield types_by_node[key]


# Cached, because without the cache this takes 6 % of a conversion of 100 nodes.
@lru_cache(maxsize=256)
def _types_of_operators(
    registry: Registry, opsets: frozenset[tuple[str, int]], operators: frozenset[tuple[str, str]]
) -> tuple[frozenset[str], Mapping[tuple[str, str], OperatorVersion]]:
    """Return the types that outputs can have independently of inputs, and the remaining operators.

    The output types of the remaining operators depend on attributes or subgraphs of the nodes.
    """
    imports, types = dict(opsets), set[str]()
    node_dependent: dict[tuple[str, str], OperatorVersion] = {}
    for domain, op_type in operators:
        operator = registry.known_or_removed_at(op_type, imports.get(domain or DEFAULT_DOMAIN, 0), domain)
        introduced = _types_of_operator(operator) if operator else frozenset[str]()
        if operator and introduced is None:
            node_dependent[domain, op_type] = operator
        types |= introduced or frozenset()
    return frozenset(types), node_dependent


def _nodes_of(
    scope: Scope, operators: Collection[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], NodeProto]]:
    """Yield `((domain, op_type), node)` for each node of the given operators."""
    nodes, op_types = scope.nodes, {op_type for _, op_type in operators}
    for position, op_type in enumerate(map(attrgetter("op_type"), nodes)):
        if op_type in op_types:
            node = nodes[position]
            identity = node.domain, op_type
            if identity in operators:
                yield identity, node


def _declared_type(attribute: AttributeProto) -> tuple[str, int, float] | None:
    """Return the name, type, and number or element type of an attribute; `None` for lists and strings."""
    kind = attribute.type
    number = attribute.t.data_type if kind == TENSOR else attribute.f if kind == FLOAT else attribute.i
    # For lists and strings, `number` is 0, too.
    is_complete = (number or kind in (FLOAT, INT)) and not attribute.ref_attr_name
    return (attribute.name, kind, number) if is_complete else None


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
        # The types of sequences, maps and sparse tensors contain the element type.
        for text in {type_to_string(value.type) for value in values if not _elem_type(value)}:
            yield from element_names(text or "")
