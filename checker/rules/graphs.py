"""Rules for graphs: their names, inputs and outputs, and the names in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opshift.checker.containers import Container, Function, Graph
from opshift.checker.findings import ERROR, INFO, WARNING, repeated, some
from opshift.checker.rule_table import Flaws, rule
from opshift.model.graphs import DEEPEST

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@rule("graph.name", ERROR, source="IR: Graphs", remedy="name the graph")
def name(graph: Graph) -> Flaws:
    """A graph must have a name."""
    if not graph.proto.name:
        yield "has no name"


@rule(
    "graph.depth",
    ERROR,
    source="the limit of protobuf readers",
    remedy="call functions instead of nesting graphs",
)
def depth(graph: Graph) -> Flaws:
    """Graphs must not be nested more deeply than protobuf readers support."""
    if graph.depth > DEEPEST:
        yield f"is nested more than {DEEPEST} graphs deep; its nodes were not checked"


@rule("graph.input-unique", ERROR, source="IR: Names Within a Graph", remedy="rename all but one")
def input_unique(graph: Graph) -> Flaws:
    """The inputs of a graph must have unique names."""
    yield from repeated("input", (value.name for value in graph.proto.input))


@rule(
    "graph.output-made",
    ERROR,
    source="IR: Names Within a Graph",
    remedy="correct the name; to return a value of an enclosing graph, add an Identity node",
)
def output_made(graph: Graph) -> Flaws:
    """An output must be a value of the graph itself."""
    # The nodes of a graph beyond the depth limit are not walked, so that their outputs are unknown.
    if graph.depth > DEEPEST:
        return
    is_value = graph.scope.sees if graph.is_top else graph.scope.known.__contains__
    for output in graph.proto.output:
        if output.name and not is_value(output.name):
            yield f"output {output.name!r} is not an input, an initializer or a node output of the graph"


@rule(
    "graph.output-repeated",
    WARNING,
    source="IR: Names Within a Graph",
    remedy="copy the value with an Identity node, and return the copy",
)
def outputrepeated(graph: Graph) -> Flaws:
    """A top-level graph should not return a value more than once."""
    if graph.is_top:
        yield from repeated("output", (value.name for value in graph.proto.output))


@rule("node.name-unique", WARNING, source="IR: Names Within a Graph", remedy="rename all but one")
def node_name_unique(container: Graph | Function) -> Flaws:
    """Nodes with a name should have unique names."""
    yield from repeated("node", (node.name for node in container.proto.node))


@rule(
    "name.identifier",
    INFO,
    source="IR: Names Within a Graph",
    remedy="rename them only if a tool generates variables from the names",
)
def identifier(container: Graph | Function) -> Flaws:
    """Names of nodes and values should be C identifiers."""
    invalid = [found for found in _names(container) if not IDENTIFIER.fullmatch(str(found))]
    if invalid:
        yield f"has names that are not C identifiers: {some(invalid)}"


@rule(
    "annotation.tensor",
    WARNING,
    source="onnx.proto: TensorAnnotation",
    remedy="correct the name, or remove the annotation",
)
def annotation_tensor(graph: Graph) -> Flaws:
    """A quantization annotation may only refer to values of the graph."""
    for annotation in graph.proto.quantization_annotation:
        for tensor in (
            annotation.tensor_name,
            *(entry.value for entry in annotation.quant_parameter_tensor_names),
        ):
            if not graph.scope.sees(tensor):
                yield f"the annotation of {annotation.tensor_name!r} refers to unknown value {tensor!r}"


def _names(container: Container) -> Iterator[str]:
    for node in container.proto.node:
        if node.name:
            yield node.name
        yield from filter(None, node.output[:])
    yield from filter(None, container.inputs)
