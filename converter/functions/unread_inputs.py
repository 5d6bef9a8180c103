"""Omission of call arguments that the converted functions do not read."""

from collections.abc import Iterable, Set

from opshift.model.graphs import Container, ContainerProto, nested_containers, nested_nodes, root_graphs
from opshift.model.messages import FunctionProto, ModelProto
from opshift.model.operator_ids import LocalFunction, called_function, function_id


def omit_unread_arguments(model: ModelProto, candidates: Iterable[Set[str]]) -> set[str]:
    """Omit arguments that the called functions do not read; return the omitted names of values of graphs.

    A converted function may use its own constant in place of a constant argument, whose element type the
    target may lack.

    Args:
        model: the converted model.
        candidates: for each function, names of values that the conversion removed from node inputs.
    """
    unread = {
        function_id(function): _input_positions(function, names)
        for function, removed in zip(model.functions, candidates, strict=True)
        if (passed := removed & {*function.input}) and (names := passed - _read_names(function))
    }
    omitted: set[str] = set()
    while unread:
        for graph in root_graphs(model):
            omitted |= _omit_arguments(graph, unread)
        # If a function passed an input only to omitted arguments, the function does not read this input,
        # either.
        unread = {
            function_id(function): _input_positions(function, names)
            for function in model.functions
            if (names := _omit_arguments(function, unread) & {*function.input} - _read_names(function))
        }
    return omitted


def _read_names(container: ContainerProto) -> set[str]:
    """Return the names that nodes read, and all output names, of a graph or function and its subgraphs."""
    names = {name for node in nested_nodes(container) for name in node.input}
    for each in nested_containers([container]):
        names.update(Container(each).outputs)
    return names


def _input_positions(function: FunctionProto, names: Iterable[str]) -> tuple[int, ...]:
    return tuple(map(list(function.input).index, names))


def _omit_arguments(container: ContainerProto, unread: dict[LocalFunction, tuple[int, ...]]) -> set[str]:
    """Omit the arguments at unread positions in all calls, and return the names of the arguments."""
    omitted = set()
    for node in nested_nodes(container):
        for position in unread.get(called_function(node), ()):
            if position < len(node.input):
                omitted.add(node.input[position])
                # Keep an empty name, even at the end, because ONNX's evaluator expects a name for each input.
                node.input[position] = ""
    return omitted - {""}
