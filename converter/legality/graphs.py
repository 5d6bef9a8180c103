"""Rules for graphs: their names, inputs and outputs, and the names in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opshift.converter.legality.containers import Container, Function, Graph
from opshift.converter.legality.findings import ERROR, INFO, WARNING
from opshift.converter.legality.names import repeated, some
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.survey import DEEPEST

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@rule("graph.name", ERROR, source="IR: Graphs", remedy="give the graph a name")
def name(graph: Graph) -> Flaws:
    """A graph has a name."""
    if not graph.proto.name:
        yield "has no name"


@rule(
    "graph.depth",
    ERROR,
    source="the limit of protobuf readers",
    remedy="call functions instead of nesting graphs",
)
def depth(graph: Graph) -> Flaws:
    """Graphs lie no deeper within each other than readers go."""
    if graph.depth > DEEPEST:
        yield f"lies more than {DEEPEST} graphs deep; what is in it was not looked at"


@rule("graph.input-unique", ERROR, source="IR: Names Within a Graph", remedy="rename all but one")
def input_unique(graph: Graph) -> Flaws:
    """The inputs of a graph have names of their own."""
    yield from repeated("input", (each.name for each in graph.proto.input))


@rule(
    "graph.output-made",
    ERROR,
    source="IR: Names Within a Graph",
    remedy="correct the name; to pass on a value from around a graph, put an Identity in it",
)
def output_made(graph: Graph) -> Flaws:
    """An output is a value of the graph itself."""
    if graph.depth > DEEPEST:
        return
    sees = graph.scope.sees if graph.is_top else graph.scope.known.__contains__
    for each in graph.proto.output:
        if each.name and not sees(each.name):
            yield f"output {each.name!r} is made by no node, input or initializer of the graph"


@rule(
    "graph.output-repeated",
    WARNING,
    source="IR: Names Within a Graph",
    remedy="put an Identity behind the value, and return what it makes",
)
def outputrepeated(graph: Graph) -> Flaws:
    """A graph returns each value once."""
    if graph.is_top:
        yield from repeated("output", (each.name for each in graph.proto.output))


@rule("node.name-unique", WARNING, source="IR: Names Within a Graph", remedy="rename all but one")
def node_name_unique(container: Graph | Function) -> Flaws:
    """Nodes that have a name have one of their own."""
    yield from repeated("node", (each.name for each in container.proto.node))


@rule(
    "name.identifier",
    INFO,
    source="IR: Names Within a Graph",
    remedy="leave it, unless a tool makes variables of the names",
)
def identifier(container: Graph | Function) -> Flaws:
    """Names of nodes and values are identifiers of C."""
    odd = [each for each in _names(container) if not IDENTIFIER.fullmatch(str(each))]
    if odd:
        yield f"no identifiers of C: {some(odd)}"


@rule(
    "annotation.tensor",
    WARNING,
    source="onnx.proto: TensorAnnotation",
    remedy="correct the name, or remove the annotation",
)
def annotation_tensor(graph: Graph) -> Flaws:
    """A quantization annotation is about tensors of the graph."""
    for each in graph.proto.quantization_annotation:
        for named in (each.tensor_name, *(entry.value for entry in each.quant_parameter_tensor_names)):
            if not graph.scope.sees(named):
                yield f"the annotation of {each.tensor_name!r} names {named!r}, which is no value"


def _names(container: Container) -> Iterator[str]:
    for node in container.proto.node:
        if node.name:
            yield node.name
        yield from filter(None, node.output[:])
    yield from filter(None, container.inputs)
