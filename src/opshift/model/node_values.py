"""Declared values of a node outside of a model: a graph with its inputs and outputs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opshift.model.errors import UsageError
from opshift.model.graphs import captured_names, graphs_of
from opshift.model.messages import GraphProto, TypeProto
from opshift.model.types import Dim, InputFacts, fill_type


def add_values(graph: GraphProto, known: Mapping[str, InputFacts], taken: Iterable[str]) -> None:
    """Add graph inputs or initializers for the values that the node reads, and its outputs as outputs."""
    node = graph.node[0]
    captured = (name for graph in graphs_of(node) for name in captured_names(graph))
    read = dict.fromkeys((*filter(None, node.input), *captured))
    for name in known:
        if name not in read:
            raise UsageError(f"the node has no input {name!r}", remedy=f"its inputs are {', '.join(read)}")
    produced = {name for name in node.output if name}
    for name in read:
        _add_value(graph, name, known.get(name))
    for name in dict.fromkeys(taken):
        if name and name not in read and name not in produced:
            graph.input.add(name=name)
    for name in node.output:
        if name:
            graph.output.add(name=name)


def _add_value(graph: GraphProto, name: str, known: Any) -> None:
    if hasattr(known, "data_type"):
        tensor = graph.initializer.add()
        tensor.ParseFromString(known.SerializeToString())
        tensor.name = name
        return
    value = graph.input.add(name=name)
    if hasattr(known, "tensor_type"):
        value.type.ParseFromString(known.SerializeToString())
    elif known is not None:
        element, dims = (known, None) if isinstance(known, str) else known
        _set_type(value.type, name, element, dims)


def _set_type(proto: TypeProto, name: str, text: str, dims: Sequence[Dim] | None) -> None:
    try:
        fill_type(proto, text, None)
    except (KeyError, AttributeError) as error:  # an unknown name, or not a text
        reason = f"unknown element type {text!r} of input {name!r}"
        remedy = "pass an element type such as float, or a type such as seq(tensor(float))"
        raise UsageError(reason, remedy=remedy) from error
    if dims is None or not proto.HasField("tensor_type"):
        return
    proto.tensor_type.shape.SetInParent()
    for dim in dims:
        added = proto.tensor_type.shape.dim.add()
        if isinstance(dim, int):
            added.dim_value = dim
        elif dim is not None:
            added.dim_param = dim
