"""Initializers: before IR version 4 each is the default of an input of its graph, and lies in the model.

The main graph gets the inputs, after its own. A graph within has the inputs that its node gives it, so there
an initializer becomes a Constant node. Before opset 9 that makes floats only: others lie in the main graph,
which those within see, if nothing else has their name.
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

ELSEWHERE = "the model has to hold them"
ANY_CONSTANT = 9
"""From this opset on a Constant is of any type."""
FLOATS = (1, 10, 11)
LOAD = "save the model with its weights in it: onnx.load, then onnx.save"


def find_standalone(contents: Contents) -> Iterator[Use]:
    """The first initializer that is no input."""
    for path, graph in contents.graphs:
        first = next(_standalone(graph), None)
        if first is not None:
            yield Use(STANDALONE, Initializer(path, first).place)
            return


def find_external(contents: Contents) -> Iterator[Use]:
    """The tensors that lie in other files."""
    for holder, tensor in contents.tensors:
        if tensor.data_location == EXTERNAL:
            yield Use("external_data", holder.place, ELSEWHERE, LOAD)


def make_inputs(contents: Contents) -> None:
    """Make every initializer an input, or in a graph within a node."""
    _lift_integers(contents)
    for path, graph in contents.graphs:
        alone = list(_standalone(graph))
        if path == "graph":
            for each in alone:
                _add_input(graph, each)
        elif alone:
            _make_nodes(graph, alone)


def _lift_integers(contents: Contents) -> None:
    """Move what no Constant can make from graphs within to the main graph."""
    opsets = {canonical_domain(each.domain): each.version for each in contents.model.opset_import}
    if opsets.get(DEFAULT_DOMAIN, ANY_CONSTANT) >= ANY_CONSTANT:
        return
    main = contents.model.graph
    counts = Counter(name for _, graph in contents.graphs for name in _names(graph))
    for _, graph in contents.graphs:
        alone = {each.name for each in _standalone(graph)} if graph is not main else ()
        for index in reversed(range(len(graph.initializer))):
            each = graph.initializer[index]
            if each.name in alone and each.data_type not in FLOATS and counts[each.name] == 1:
                main.initializer.add().CopyFrom(each)
                del graph.initializer[index]


def _names(graph: Any) -> Iterator[str]:
    yield from (each.name for each in (*graph.input, *graph.initializer))
    yield from (name for node in graph.node for name in node.output)


def _standalone(graph: Any) -> Iterator[Any]:
    inputs = {each.name for each in graph.input}
    return (each for each in graph.initializer if each.name not in inputs)


def _add_input(graph: Any, initializer: Any) -> None:
    value = graph.input.add()
    value.name = initializer.name
    value.type.tensor_type.elem_type = initializer.data_type
    shape = value.type.tensor_type.shape
    shape.SetInParent()
    for size in initializer.dims:
        shape.dim.add().dim_value = size


def _make_nodes(graph: Any, initializers: list[Any]) -> None:
    count = len(graph.node)
    for each in initializers:
        node = graph.node.add()
        node.op_type = "Constant"
        node.output.append(each.name)
        attribute = node.attribute.add()
        attribute.name, attribute.type = "value", TENSOR
        attribute.t.CopyFrom(each)
        attribute.t.ClearField("name")
    names = {each.name for each in initializers}
    kept = [index for index, each in enumerate(graph.initializer) if each.name in names]
    for index in reversed(kept):
        del graph.initializer[index]
    keys = iter([*range(count), *(-1 for _ in initializers)])
    graph.node.sort(key=lambda _: next(keys))
