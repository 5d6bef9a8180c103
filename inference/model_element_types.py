"""Element types that can occur in a model."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from functools import lru_cache

from opshift.inference.infer_types import determines_type, type_from_attribute, type_of_constant
from opshift.inference.scope import Scope
from opshift.model.element_types import BY_NUMBER, element_names
from opshift.model.graphs import ContainerProto, is_graph
from opshift.model.messages import AttributeProto, NodeProto
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.types import type_to_string
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.registry import Registry


def element_types_in(scopes: Iterable[Scope], operators: Collection[tuple[str, str]]) -> frozenset[str]:
    """Return every element type that values of known type can have, in all graphs and functions of a model.

    `operators` has domain and op_type of every node.
    """
    found: set[str] = set()
    types_by_node: dict[tuple[object, ...], frozenset[str]] = {}
    """Element types of similar nodes: a model has many Constant and Cast nodes of few types."""
    for scope in scopes:
        found.update(_declared_types(scope.container))
        opsets = frozenset(scope.opsets.items())
        types, node_dependent = _types_of_operators(scope.registry, opsets, frozenset(operators))
        found |= types
        for proto in _nodes_of(scope, node_dependent) if node_dependent else ():
            identity = proto.domain, proto.op_type
            key = opsets, identity, *map(_declared_type, proto.attribute)
            if key not in types_by_node or None in key:
                types_by_node[key] = _types_of_node(Node.from_proto(proto), node_dependent[identity])
            found |= types_by_node[key]
    return frozenset(found)


# Many models have the same operators; without the cache this takes 6 % of a conversion of 100 nodes.
@lru_cache(maxsize=256)
def _types_of_operators(
    registry: Registry, opsets: frozenset[tuple[str, int]], operators: frozenset[tuple[str, str]]
) -> tuple[frozenset[str], Mapping[tuple[str, str], OperatorVersion]]:
    """Return the element types that any nodes of some operators introduce, and the other operators.

    The nodes of the other operators have attributes or subgraphs that declare element types.
    """
    imports, types = dict(opsets), set[str]()
    node_dependent: dict[tuple[str, str], OperatorVersion] = {}
    for domain, op_type in operators:
        operator = registry.at(op_type, imports.get(domain or DEFAULT_DOMAIN, 0), domain)
        introduced = _types_of_operator(operator) if operator else frozenset[str]()
        if operator and introduced is None:
            node_dependent[domain, op_type] = operator
        types |= introduced or frozenset()
    return frozenset(types), node_dependent


def _nodes_of(scope: Scope, operators: Container[tuple[str, str]]) -> Iterator[NodeProto]:
    if not scope.has_node_records:
        return (proto for proto in scope.container.node if (proto.domain, proto.op_type) in operators)
    return (scope.proto_of(each) for each in scope.node_records if (each[1], each[2]) in operators)


def _declared_type(attribute: AttributeProto) -> tuple[str, int] | None:
    """Return the name and the element type of an attribute; `None` if it may state one in another way."""
    is_tensor = attribute.type == AttributeProto.TENSOR
    number = attribute.t.data_type if is_tensor else attribute.i
    # The number is 0 in attributes without an element type, and in references to attributes of a function.
    return (attribute.name, number) if number else None


def _types_of_operator(operator: OperatorVersion) -> frozenset[str] | None:
    """Return the element types that any node introduces; `None` if attributes or subgraphs matter."""
    if operator.holds_graphs or not all(_is_plain(output, operator) for output in operator.outputs):
        return None
    return _types_of_node(Node(operator.name, (), (), {}, operator.domain), operator)


def _types_of_node(node: Node, operator: OperatorVersion) -> frozenset[str]:
    return frozenset(name for output in operator.outputs for name in _types_of_output(node, operator, output))


def _is_plain(output: Parameter, operator: OperatorVersion) -> bool:
    """Whether the type of an output is independent of the node's attributes."""
    return not output.type_attribute and operator.name != "Constant"


def _types_of_output(node: Node, operator: OperatorVersion, output: Parameter) -> Iterator[str]:
    """Yield the element types that an output can have independently of the types of the inputs."""
    types = operator.types_of(output) if output.homogeneous else ()
    if len(types) > 1 and any(determines_type(formal, output) for formal in operator.inputs):
        types = ()
    named = None
    if not node.has_attribute_references and not _is_plain(output, operator):
        named = type_of_constant(node) or type_from_attribute(operator, node, output.type_attribute or "")
    for each in (named,) if named else (*types, output.absent_type or ""):
        yield from element_names(each)


def _declared_types(container: ContainerProto) -> Iterator[str]:
    """Yield the element types that a graph or function declares for its values."""
    values = [*container.value_info]
    numbers: set[int] = set()
    if is_graph(container):
        values += (*container.input, *container.output)
        numbers.update(each.data_type for each in container.initializer)
        numbers.update(each.values.data_type for each in container.sparse_initializer)
    numbers.update(value.type.tensor_type.elem_type for value in values)
    yield from (BY_NUMBER[number].name for number in numbers if number in BY_NUMBER)
    # The types of sequences, maps and sparse tensors contain the element type.
    others = {type_to_string(value.type) for value in values if not value.type.tensor_type.elem_type}
    for text in others:
        yield from element_names(text or "")
