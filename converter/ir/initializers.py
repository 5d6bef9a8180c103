"""Initializers: before IR version 4, each is the default of a graph input and stored in the model.

In the main graph, initializers become inputs after the existing ones. The inputs of a subgraph are those that
its node passes, so that its initializers become Constant nodes. Before opset 9, Constant produces only
floating-point tensors: other initializers move to the main graph, which subgraphs can read, if their name is
unique.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from opshift.adapters.tensors import EXTERNAL
from opshift.converter.ir.change import STANDALONE
from opshift.converter.ir.contents import TENSOR, Contents
from opshift.converter.ir.parts import Initializer
from opshift.converter.ir.use import Use
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

ELSEWHERE = "they must be stored in the model"
ANY_CONSTANT = 9
"""First opset in which a Constant can have any element type."""
FLOATS = (1, 10, 11)
"""Element types of Constant before opset 9: float, float16 and double."""
LOAD = "store the weights in the model: load it with onnx.load, and save it with onnx.save"


def find_standalone(contents: Contents) -> Iterator[Use]:
    """Yield the first initializer that is not a graph input."""
    for path, graph in contents.graphs:
        first = next(_standalone(graph), None)
        if first is not None:
            yield Use(STANDALONE, Initializer(path, first).place)
            return  # all initializers can be rewritten, so that one place is enough


def find_external(contents: Contents) -> Iterator[Use]:
    """Yield the tensors with external data."""
    for holder, tensor in contents.tensors:
        if tensor.data_location == EXTERNAL:
            yield Use("external_data", holder.place, ELSEWHERE, LOAD)


def make_inputs(contents: Contents) -> None:
    """Turn initializers into inputs in the main graph, and into Constant nodes in subgraphs."""
    _move_non_floats_to_main_graph(contents)
    for path, graph in contents.graphs:
        standalone = list(_standalone(graph))
        if path == "graph":
            for initializer in standalone:
                _add_input(graph, initializer)
        elif standalone:
            _add_constants(graph, standalone)


def _move_non_floats_to_main_graph(contents: Contents) -> None:
    opsets = {canonical_domain(entry.domain): entry.version for entry in contents.model.opset_import}
    if opsets.get(DEFAULT_DOMAIN, ANY_CONSTANT) >= ANY_CONSTANT:
        return
    main = contents.model.graph
    counts = Counter(name for _, graph in contents.graphs for name in _names(graph))
    for _, graph in contents.graphs:
        standalone = {tensor.name for tensor in _standalone(graph)} if graph is not main else ()
        # In reverse, so that a deletion does not change the indices of the remaining initializers.
        for index in reversed(range(len(graph.initializer))):
            tensor = graph.initializer[index]
            if tensor.name in standalone and tensor.data_type not in FLOATS and counts[tensor.name] == 1:
                main.initializer.add().CopyFrom(tensor)
                del graph.initializer[index]


def _names(graph: Any) -> Iterator[str]:
    yield from (named.name for named in (*graph.input, *graph.initializer))
    yield from (name for node in graph.node for name in node.output)


def _standalone(graph: Any) -> Iterator[Any]:
    inputs = {value.name for value in graph.input}
    return (tensor for tensor in graph.initializer if tensor.name not in inputs)


def _add_input(graph: Any, initializer: Any) -> None:
    value = graph.input.add()
    value.name = initializer.name
    value.type.tensor_type.elem_type = initializer.data_type
    shape = value.type.tensor_type.shape
    # A scalar has a shape without dimensions, which would otherwise be absent.
    shape.SetInParent()
    for size in initializer.dims:
        shape.dim.add().dim_value = size


def _add_constants(graph: Any, initializers: list[Any]) -> None:
    count = len(graph.node)
    for initializer in initializers:
        node = graph.node.add()
        node.op_type = "Constant"
        node.output.append(initializer.name)
        attribute = node.attribute.add()
        attribute.name, attribute.type = "value", TENSOR
        attribute.t.CopyFrom(initializer)
        attribute.t.ClearField("name")
    names = {initializer.name for initializer in initializers}
    replaced = [index for index, tensor in enumerate(graph.initializer) if tensor.name in names]
    for index in reversed(replaced):
        del graph.initializer[index]
    # Sort the new nodes to the front, before the nodes that read them; the order of the others is kept.
    keys = iter([*range(count), *(-1 for _ in initializers)])
    graph.node.sort(key=lambda _: next(keys))
