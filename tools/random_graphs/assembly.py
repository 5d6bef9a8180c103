"""Assembly of a model from a drawn graph: value infos, and nodes moved into functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from random_graphs.functions import DOMAIN, call_of, function_of
from random_graphs.graph import MIN_OPSET_ANY_CONSTANT, Graph
from random_graphs.values import Value, type_proto

MIN_IR_VERSION_FUNCTIONS = 8
MIN_IR_VERSION_STANDALONE_INITIALIZERS = 4
"""The first IR versions with functions, and with initializers that are not inputs."""


def model_of(graph: Graph) -> onnx.ModelProto:
    """Build the model; its outputs are all unread values and some others."""
    functions, nodes = [], []
    for position, node in enumerate(graph.nodes):
        to_function = may_have_functions(graph) and node.op_type != "Constant" and graph.chance(10)
        if to_function and not any(attribute.HasField("g") for attribute in node.attribute):
            functions.append(function_of(f"F{position}", node, graph.opsets))
            node = call_of(functions[-1], node)
        nodes.append(_with_name(graph, node, position))
    shape_kind = graph.one_of(["static", "static", "symbolic", "none"])
    outputs = {each.name: each.data for each in _chosen_outputs(graph)}
    main_graph = helper.make_graph(
        nodes,
        "random",
        _value_infos_of(_graph_inputs(graph), shape_kind),
        _value_infos_of(outputs, shape_kind),
    )
    main_graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in graph.initializers.items()
    )
    if graph.chance(30):
        main_graph.value_info.extend(_value_infos(graph))
    model = graph.model_of(main_graph)
    model.functions.extend(functions)
    if not functions and not any(map(_is_classical, nodes)) and graph.chance(80):
        del model.opset_import[1:]
    if functions:
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return model


def _is_classical(node: onnx.NodeProto) -> bool:
    """Return whether the node or a node in its subgraphs has a non-default domain."""
    inner = (each for attribute in node.attribute for each in attribute.g.node)
    return bool(node.domain) or any(map(_is_classical, inner))


def may_have_functions(graph: Graph) -> bool:
    """Return whether nodes may move into functions, which have constants as nodes."""
    return graph.ir_version >= MIN_IR_VERSION_FUNCTIONS and graph.opset >= MIN_OPSET_ANY_CONSTANT


def _graph_inputs(graph: Graph) -> dict[str, Any]:
    standalone = graph.ir_version >= MIN_IR_VERSION_STANDALONE_INITIALIZERS
    names = sorted(graph.overridable) if standalone else list(graph.initializers)
    return {**graph.feeds, **{name: graph.initializers[name] for name in names}}


def _value_infos_of(values: Mapping[str, Any], shape_kind: str) -> list[onnx.ValueInfoProto]:
    return [
        helper.make_value_info(name, type_proto(data, _declared_dims(name, data, shape_kind)))
        for name, data in values.items()
    ]


def _declared_dims(name: str, data: Any, shape_kind: str) -> Any:
    if isinstance(data, list) or shape_kind == "none":
        return None
    return [f"{name}_{axis}" for axis in range(np.ndim(data))] if shape_kind == "symbolic" else np.shape(data)


def _chosen_outputs(graph: Graph) -> list[Value]:
    produced = {name for node in graph.nodes for name in node.output}
    read = {name for node in graph.nodes for name in node.input}
    candidates = [each for each in graph.values if each.name in produced and (each.is_tensor or each.data)]
    return [each for each in candidates if each.name not in read or graph.chance(30)]


def _with_name(graph: Graph, node: onnx.NodeProto, position: int) -> onnx.NodeProto:
    if graph.chance(50):
        node.name = f"node {position}"
    if graph.chance(10):
        node.doc_string = f"purpose of node {position}"
    return node


def _value_infos(graph: Graph) -> list[onnx.ValueInfoProto]:
    produced = {name for node in graph.nodes for name in node.output}
    candidates = [
        each for each in graph.values if each.name in produced and each.is_tensor and graph.chance(70)
    ]
    return _value_infos_of({each.name: each.data for each in candidates}, "static")
