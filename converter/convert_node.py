"""Convert one node that is in no model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opshift.converter.container import graphs_of
from opshift.converter.convert import convert
from opshift.converter.errors import UsageError
from opshift.converter.opsets import opset_imports
from opshift.converter.target import TargetLike, read_target
from opshift.registry.catalogue import Registry, default_registry
from opshift.registry.element_types import BY_NAME
from opshift.registry.messages import IR_VERSION, ModelProto
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

Known = Any
"""What is known of an input: see `convert_node`."""


@dataclass(frozen=True)
class ConvertedNode:
    """What takes a node's place.

    Attributes:
        nodes: in order, of the class of the node that was given.
        constants: TensorProtos that the nodes read by name: initializers of the graph to be.
        opsets: what the nodes are written for, by domain.
    """

    nodes: tuple[Any, ...]
    constants: tuple[Any, ...]
    opsets: Mapping[str, int]


def convert_node(
    node: Any,
    source: TargetLike,
    target: TargetLike,
    *,
    inputs: Mapping[str, Known] | None = None,
    taken: Iterable[str] = (),
    allow: str | Iterable[str] = (),
    registry: Registry | None = None,
) -> ConvertedNode:
    """Convert a NodeProto from one opset to another, as `convert_version` does in a model.

    Args:
        node: the project's NodeProto or `onnx`'s; it is left as it is.
        source: the opset that it is written for: a number (of the node's own domain), or as `target` of
            `convert_version`.
        target: likewise.
        inputs: what is known of the values that it reads, by name: an element type such as `"float"`, a pair
            of it and the dimensions (sizes, names or `None`), a TypeProto, or the value as a TensorProto.
            Without that only steps that need not know are taken.
        taken: names that new values must not have.
        allow: as for `convert_version`.
        registry: as for `convert_version`.

    Raises:
        ConversionRefused: the node cannot be converted, or more has to be known of its inputs.
        UsageError, UnknownOpset, UnknownDomain: the request makes no sense.
    """
    registry = registry or default_registry()
    model = ModelProto(ir_version=IR_VERSION)
    for domain, opset in read_target(_of_domain(source, node.domain), registry).opsets.items():
        model.opset_import.add(domain="" if domain == DEFAULT_DOMAIN else domain, version=opset)
    model.graph.node.add().ParseFromString(node.SerializeToString())
    _add_values(model.graph, inputs or {}, taken)
    before = {each.name for each in model.graph.initializer}
    goal = _of_domain(target, node.domain)
    convert(model, goal, inplace=True, allow=allow, ir_version="keep", registry=registry)
    node_class, tensor_class = type(node), type(type(node)().attribute.add().t)
    return ConvertedNode(
        tuple(node_class.FromString(each.SerializeToString()) for each in model.graph.node),
        tuple(
            tensor_class.FromString(each.SerializeToString())
            for each in model.graph.initializer
            if each.name not in before
        ),
        opset_imports(model.opset_import),
    )


def _of_domain(opset: TargetLike, domain: str) -> TargetLike:
    is_number = isinstance(opset, int) and not isinstance(opset, bool)
    return {canonical_domain(domain): opset} if is_number else opset


def _add_values(graph: Any, known: Mapping[str, Known], taken: Iterable[str]) -> None:
    """Make the values that the node reads inputs and initializers of its graph, and its own outputs of it."""
    node = graph.node[0]
    read = dict.fromkeys(
        (*filter(None, node.input), *(name for each in graphs_of(node) for name in _free(each)))
    )
    for name in known:
        if name not in read:
            raise UsageError(f"the node does not read {name!r}", remedy=f"it reads {', '.join(read)}")
    made = {name for name in node.output if name}
    for name in read:
        _state(graph, name, known.get(name))
    for name in dict.fromkeys(taken):
        if name and name not in read and name not in made:
            graph.input.add(name=name)
    for name in node.output:
        if name:
            graph.output.add(name=name)


def _state(graph: Any, name: str, known: Known) -> None:
    if hasattr(known, "data_type"):
        tensor = graph.initializer.add()
        tensor.ParseFromString(known.SerializeToString())
        tensor.name = name
        return
    value = graph.input.add(name=name)
    if hasattr(known, "tensor_type"):
        value.type.ParseFromString(known.SerializeToString())
    elif known is not None:
        _state_tensor(value.type.tensor_type, name, known)


def _state_tensor(tensor: Any, name: str, known: Known) -> None:
    element, dims = (known, None) if isinstance(known, str) else known
    if element not in BY_NAME:
        raise UsageError(f"{element!r}, said of {name!r}, is no element type", remedy="name one as float")
    tensor.elem_type = BY_NAME[element].number
    if dims is None:
        return
    tensor.shape.SetInParent()
    for dim in dims:
        added = tensor.shape.dim.add()
        if isinstance(dim, int):
            added.dim_value = dim
        elif dim is not None:
            added.dim_param = dim


def _free(graph: Any) -> Iterator[str]:
    """The names that a graph reads and does not make."""
    made = {"", *(each.name for each in (*graph.input, *graph.initializer))}
    made |= {each.values.name for each in graph.sparse_initializer}
    for node in graph.node:
        yield from (name for name in node.input if name not in made)
        yield from (name for each in graphs_of(node) for name in _free(each) if name not in made)
        made.update(node.output)
    yield from (value.name for value in graph.output if value.name not in made)
