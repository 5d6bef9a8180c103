"""Omission of arguments that converted functions do not read any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from opshift.converter.repeated_fields import remove_messages
from opshift.model.graphs import Container, ContainerProto, nested_containers, nested_nodes, training_graphs
from opshift.model.operator_ids import LocalFunction, called_function, function_id

if TYPE_CHECKING:
    from opshift.model.messages import FunctionProto, GraphProto, ModelProto


def read_inputs(function: FunctionProto) -> frozenset[str]:
    """Return the inputs that a function reads."""
    return frozenset(function.input) & _read_names(function)


def omit_unread_arguments(model: ModelProto, read_before: Sequence[frozenset[str]]) -> None:
    """Omit arguments that no function reads any more, and remove initializers that only their calls read.

    The body of a function may contain a copy of a constant argument, whose element type the target may lack.

    Args:
        model: the converted model.
        read_before: the inputs that each function read before the conversion.
    """
    unread = {
        function_id(function): _positions(function, unread_names)
        for function, before in zip(model.functions, read_before, strict=True)
        if (unread_names := before - read_inputs(function))
    }
    while unread:
        for graph in (model.graph, *(each.graph for each in training_graphs(model))):
            omitted = _omit_arguments(graph, unread)
            _remove_initializers(graph, omitted - _read_names(graph))
        # A function that only handed the argument on does not read it any more, either.
        unread = {
            function_id(function): _positions(function, names)
            for function in model.functions
            if (names := _omit_arguments(function, unread) & {*function.input} - _read_names(function))
        }


def _read_names(container: ContainerProto) -> set[str]:
    """Return the names that nodes of a graph or function read, and those of outputs, subgraphs included."""
    names = {name for node in nested_nodes(container) for name in node.input}
    for each in nested_containers([container]):
        names.update(Container(each).outputs)
    return names


def _positions(function: FunctionProto, names: Iterable[str]) -> tuple[int, ...]:
    return tuple(map(list(function.input).index, names))


def _omit_arguments(container: ContainerProto, unread: dict[LocalFunction, tuple[int, ...]]) -> set[str]:
    """Omit the arguments at unread positions in all calls, and return their names."""
    omitted = set()
    for node in nested_nodes(container):
        for position in unread.get(called_function(node), ()):
            if position < len(node.input):
                omitted.add(node.input[position])
                # Not removed, even at the end: ONNX's evaluator expects one name for each input.
                node.input[position] = ""
    return omitted - {""}


def _remove_initializers(graph: GraphProto, names: set[str]) -> None:
    for each in nested_containers([graph]):
        removable = names - {value.name for value in each.input}
        remove_messages(each.initializer, [tensor.name in removable for tensor in each.initializer])
        remove_messages(each.value_info, [value.name in removable for value in each.value_info])
