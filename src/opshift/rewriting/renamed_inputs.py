"""Copies of subgraphs whose inputs have other names."""

from collections.abc import Mapping

from opshift.model.graphs import Container, graphs_of
from opshift.model.messages import GraphProto


def with_inputs_renamed(graph: GraphProto, names: Mapping[str, str]) -> GraphProto:
    """Return a copy of a graph with new names for inputs, also where nodes and annotations refer to them."""
    copy = type(graph)()
    copy.CopyFrom(graph)
    waiting = [(copy, names)]
    while waiting:
        each, inherited = waiting.pop()
        if each is not copy:
            own = Container(each).predefined_names().union(*(node.output for node in each.node))
            inherited = {name: new for name, new in inherited.items() if name not in own}
        for node in each.node:
            node.input[:] = [inherited.get(name, name) for name in node.input]
            waiting += [(inner, inherited) for inner in graphs_of(node)]
        for value in (*each.input, *each.output, *each.value_info):
            value.name = inherited.get(value.name, value.name)
        for annotation in each.quantization_annotation:
            annotation.tensor_name = inherited.get(annotation.tensor_name, annotation.tensor_name)
            for entry in annotation.quant_parameter_tensor_names:
                entry.value = inherited.get(entry.value, entry.value)
    return copy
