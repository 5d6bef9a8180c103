"""A model out of a graph that was drawn: what it says of its values, and what it makes a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from support.graphs.functions import DOMAIN, call_of, function_of
from support.graphs.graph import FIRST_WITH_ANY_CONSTANT, Graph
from support.graphs.values import Value, type_proto

FUNCTIONS_CAME = 8
INITIALIZERS_STAND_ALONE = 4
"""IR versions: the first with functions, and the first with initializers that are no inputs."""


def model_of(graph: Graph) -> onnx.ModelProto:
    """The model, whose outputs are what no other node reads, and some more."""
    functions, nodes = [], []
    for position, node in enumerate(graph.nodes):
        is_moved = may_have_functions(graph) and node.op_type != "Constant" and graph.chance(10)
        if is_moved and not any(attribute.HasField("g") for attribute in node.attribute):
            functions.append(function_of(f"F{position}", node, graph.opsets))
            node = call_of(functions[-1], node)
        nodes.append(_named(graph, node, position))
    shaped = graph.one_of(["static", "static", "symbolic", "none"])
    outputs = {each.name: each.data for each in _results(graph)}
    inner = helper.make_graph(nodes, "random", _infos(_inputs(graph), shaped), _infos(outputs, shaped))
    inner.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in graph.initializers.items()
    )
    if graph.chance(30):
        inner.value_info.extend(_value_infos(graph))
    model = graph.model_of(inner)
    model.functions.extend(functions)
    if not functions and not any(map(_is_classical, nodes)) and graph.chance(80):
        del model.opset_import[1:]
    if functions:
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return model


def _is_classical(node: onnx.NodeProto) -> bool:
    """Whether the node, or one in the graphs that it holds, is of another domain than the default one."""
    inner = (each for attribute in node.attribute for each in attribute.g.node)
    return bool(node.domain) or any(map(_is_classical, inner))


def may_have_functions(graph: Graph) -> bool:
    """Whether nodes may stand in functions, which hold constants as nodes."""
    return graph.ir_version >= FUNCTIONS_CAME and graph.opset >= FIRST_WITH_ANY_CONSTANT


def _inputs(graph: Graph) -> dict[str, Any]:
    alone = graph.ir_version >= INITIALIZERS_STAND_ALONE
    held = sorted(graph.overridable) if alone else list(graph.initializers)
    return {**graph.feeds, **{name: graph.initializers[name] for name in held}}


def _infos(values: Mapping[str, Any], shaped: str) -> list[onnx.ValueInfoProto]:
    return [
        helper.make_value_info(name, type_proto(data, _dims(name, data, shaped)))
        for name, data in values.items()
    ]


def _dims(name: str, data: Any, shaped: str) -> Any:
    if isinstance(data, list) or shaped == "none":
        return None
    return [f"{name}_{place}" for place in range(np.ndim(data))] if shaped == "symbolic" else np.shape(data)


def _results(graph: Graph) -> list[Value]:
    made = {name for node in graph.nodes for name in node.output}
    read = {name for node in graph.nodes for name in node.input}
    listed = [each for each in graph.values if each.name in made and (each.is_tensor or each.data)]
    return [each for each in listed if each.name not in read or graph.chance(30)]


def _named(graph: Graph, node: onnx.NodeProto, position: int) -> onnx.NodeProto:
    if graph.chance(50):
        node.name = f"node {position}"
    if graph.chance(10):
        node.doc_string = f"why node {position} is there"
    return node


def _value_infos(graph: Graph) -> list[onnx.ValueInfoProto]:
    made = {name for node in graph.nodes for name in node.output}
    listed = [each for each in graph.values if each.name in made and each.is_tensor and graph.chance(70)]
    return _infos({each.name: each.data for each in listed}, "static")
