"""Element types that can occur in a model."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache

from opshift.inference.infer_types import determines_type, type_from_attribute, type_of_constant
from opshift.model.element_types import BY_NUMBER, element_names
from opshift.model.graphs import ContainerProto, graphs_of, is_graph, root_graphs
from opshift.model.messages import AttributeProto, ModelProto, OperatorSetIdProto
from opshift.model.node import Node
from opshift.model.operator_ids import canonical_domain, opset_imports
from opshift.model.types import type_to_string
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.registry import Registry


def element_types_of_model(
    model: ModelProto, registry: Registry, operators: Collection[tuple[str, str]]
) -> frozenset[str]:
    """Return every element type that values of known type can have, in any graph or function of a model.

    `operators` has domain and op_type of every node.
    """
    found: set[str] = set()
    roots: list[tuple[list[ContainerProto], Iterable[OperatorSetIdProto]]] = [
        ([*root_graphs(model)], model.opset_import)
    ]
    roots.extend(([function], function.opset_import or model.opset_import) for function in model.functions)
    for containers, imports in roots:
        opsets = opset_imports(imports, model.ir_version)
        versions = {
            (domain, op_type): registry.at(op_type, opsets.get(canonical_domain(domain), 0), domain)
            for domain, op_type in operators
        }
        _add_types(containers, versions, found)
    return frozenset(found)


def _add_types(
    containers: list[ContainerProto],
    operators: Mapping[tuple[str, str], OperatorVersion | None],
    found: set[str],
) -> None:
    """Add the element types that occur in graphs or functions and in their subgraphs."""
    types_by_operator = {
        each: _types_of_operator(operator) if operator else None for each, operator in operators.items()
    }
    found.update(*filter(None, types_by_operator.values()))
    node_dependent = {each for each, types in types_by_operator.items() if types is None}
    types_by_node: dict[tuple[object, ...], frozenset[str]] = {}
    """Element types of similar nodes: a model has many Constant and Cast nodes of few types."""
    while containers:
        container = containers.pop()
        found.update(_declared_types(container))
        for proto in container.node if node_dependent else ():
            identity = proto.domain, proto.op_type
            if identity not in node_dependent:
                continue
            operator = operators[identity]
            if operator is None or operator.holds_graphs:
                containers += graphs_of(proto)
            if operator is None:
                continue
            key = identity, *map(_stated_type, proto.attribute)
            if key not in types_by_node or None in key:
                types_by_node[key] = _types_of_node(Node.from_proto(proto), operator)
            found |= types_by_node[key]


def _stated_type(attribute: AttributeProto) -> tuple[str, int] | None:
    """Return the name and the element type of an attribute; `None` if it may state one in another way."""
    is_tensor = attribute.type == AttributeProto.TENSOR
    number = attribute.t.data_type if is_tensor else attribute.i
    # 0 is no element type: the attribute has another type, or refers to one of the enclosing function.
    return (attribute.name, number) if number else None


@lru_cache(maxsize=4096)
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
    if is_graph(container):
        values += (*container.input, *container.output)
        numbers = {each.data_type for each in container.initializer}
        numbers |= {each.values.data_type for each in container.sparse_initializer}
        yield from (BY_NUMBER[number].name for number in numbers if number in BY_NUMBER)
    for text in {type_to_string(value.type) for value in values}:
        yield from element_names(text or "")
