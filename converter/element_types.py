"""Which element types the values of a model may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from opshift.adapters.node import Node
from opshift.converter.container import graphs_of
from opshift.converter.inference import constant_type, decides, named_type
from opshift.converter.lines import Lines
from opshift.converter.opsets import opset_imports
from opshift.converter.types import type_text
from opshift.registry.catalogue import Registry
from opshift.registry.element_types import BY_NUMBER, element_names
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from opshift.registry.names import canonical_domain


def element_types_in(model: Any, registry: Registry, lines: Lines) -> frozenset[str]:
    """Every element type that a value of a known type can have, in any graph or function of the model."""
    found: set[str] = set()
    imports = opset_imports(model.opset_import, model.ir_version)
    graphs = [model.graph]
    for info in model.training_info:
        graphs += (info.initialization, info.algorithm)
    _add(graphs, imports, registry, lines, found)
    for function in model.functions:
        own = opset_imports(function.opset_import or model.opset_import, model.ir_version)
        _add([function], own, registry, lines, found)
    return frozenset(found)


def _add(
    containers: list[Any], opsets: Mapping[str, int], registry: Registry, lines: Lines, found: set[str]
) -> None:
    plain: set[str] = set()
    """Operators of the default domain of which one node tells as much as all."""
    while containers:
        container = containers.pop()
        found.update(_stated(container))
        for proto, domain, op_type, _, _ in lines.of(container):
            if not domain and op_type in plain:
                continue
            containers += graphs_of(proto)
            opset = opsets.get(canonical_domain(domain), 0)
            operator = registry.at(op_type, opset, domain)
            if operator is None:
                continue
            varied = [output for output in operator.outputs if not _is_plain(output, operator)]
            for output in operator.outputs:
                found.update(_types_of(Node.of(proto), operator, output))
            if not varied and not domain and not any(map(_is_graph, operator.attributes.values())):
                plain.add(op_type)


def _is_graph(attribute: Attribute) -> bool:
    return attribute.type in ("GRAPH", "GRAPHS")


def _is_plain(output: Parameter, operator: OperatorVersion) -> bool:
    """Whether nodes say nothing of their own about the type of an output."""
    return not output.type_attribute and operator.name != "Constant"


def _types_of(node: Node, operator: OperatorVersion, output: Parameter) -> Iterator[str]:
    """The element types that an output can have and that none of the inputs brings."""
    types = operator.types_of(output) if output.homogeneous else ()
    if len(types) > 1 and any(decides(formal, output) for formal in operator.inputs):
        types = ()
    named = None
    if not node.refers_to_caller and not _is_plain(output, operator):
        named = constant_type(node) or named_type(operator, node, output.type_attribute or "")
    for each in (named,) if named else (*types, output.absent_type or ""):
        yield from element_names(each)


def _stated(container: Any) -> Iterator[str]:
    """The element types that a graph or function states of its values."""
    values = [*container.value_info]
    if hasattr(container, "initializer"):
        values += (*container.input, *container.output)
        numbers = {each.data_type for each in container.initializer}
        numbers |= {each.values.data_type for each in container.sparse_initializer}
        yield from (BY_NUMBER[number].name for number in numbers if number in BY_NUMBER)
    for text in {type_text(value.type) for value in values}:
        yield from element_names(text or "")
