"""Rules for graphs: names, inputs and outputs, and the order of the nodes."""

from collections.abc import Iterator

from opshift.checker.checked_model import CheckedModel
from opshift.checker.checked_nodes import CheckedNode
from opshift.checker.containers import CheckedFunction, CheckedGraph
from opshift.checker.findings import ERROR, INFO, WARNING, duplicate_names, list_names
from opshift.checker.rule_table import NAMES, Problems, rule
from opshift.model.declarations import declarations_in, named_dims
from opshift.model.graphs import MAX_SUBGRAPH_DEPTH
from opshift.model.operator_ids import IDENTIFIER


@rule("graph.name", ERROR, "IR: Graphs", "name the graph")
def name(graph: CheckedGraph) -> Problems:
    """A graph must have a name."""
    if not graph.proto.name:
        yield "has no name"


@rule("graph.depth", ERROR, "the limit of protobuf readers", "call functions instead of nesting graphs")
def depth(graph: CheckedGraph) -> Problems:
    """Graphs must not be nested more deeply than protobuf readers support."""
    if graph.depth > MAX_SUBGRAPH_DEPTH:
        yield f"is nested more than {MAX_SUBGRAPH_DEPTH} graphs deep; its nodes were not checked"


@rule("graph.input-unique", ERROR, NAMES, "give each input a unique name")
def input_unique(graph: CheckedGraph) -> Problems:
    """The inputs of a graph must have unique names."""
    yield from duplicate_names("input", (value.name for value in graph.proto.input))


@rule("graph.output-made", ERROR, NAMES, "correct the name; copy values of enclosing graphs with Identity")
def output_produced(graph: CheckedGraph) -> Problems:
    """An output must be a value of the graph itself.

    A training graph may also return values of the main graph.
    """
    # `check` skips the nodes of graphs beyond the depth limit, so their outputs are unknown.
    if graph.depth > MAX_SUBGRAPH_DEPTH:
        return
    is_value = graph.scope.is_visible if graph.is_top else graph.scope.defined_names.__contains__
    for output in graph.proto.output:
        if output.name and not is_value(output.name):
            yield f"output {output.name!r} is not an input, an initializer or a node output of the graph"


@rule("graph.output-repeated", WARNING, NAMES, "copy the value with an Identity node, and return the copy")
def output_repeated(graph: CheckedGraph) -> Problems:
    """A top-level graph should not return a value more than once."""
    if graph.is_top:
        yield from duplicate_names("output", (value.name for value in graph.proto.output))


@rule("node.name-unique", WARNING, NAMES, "give each node a unique name")
def node_name_unique(container: CheckedGraph | CheckedFunction) -> Problems:
    """Nodes with a name should have unique names."""
    yield from duplicate_names("node", (node.name for node in container.proto.node))


@rule("name.identifier", INFO, NAMES, "change the names only if a tool generates variables from them")
def c_identifiers(container: CheckedGraph | CheckedFunction) -> Problems:
    """Names of graphs, nodes, values, attributes and dimensions should be C identifiers."""
    names = dict.fromkeys(filter(None, _names_in(container)))
    invalid = [found for found in names if not IDENTIFIER.fullmatch(str(found))]
    if invalid:
        yield f"has names that are not C identifiers: {list_names(invalid)}"


@rule("graph.name-unique", WARNING, NAMES, "give each graph a unique name")
def graph_name_unique(model: CheckedModel) -> Problems:
    """The graphs of a model should have unique names."""
    yield from duplicate_names("graph", model.graph_names)


@rule("annotation.tensor", WARNING, "onnx.proto: TensorAnnotation", "correct or remove the name")
def annotation_tensor(graph: CheckedGraph) -> Problems:
    """A quantization annotation may only refer to values of the graph or an enclosing one."""
    for annotation in graph.proto.quantization_annotation:
        parameters = (entry.value for entry in annotation.quant_parameter_tensor_names)
        for tensor in (annotation.tensor_name, *parameters):
            if not graph.scope.is_visible(tensor):
                yield f"the annotation of {annotation.tensor_name!r} refers to unknown value {tensor!r}"


def _names_in(container: CheckedGraph | CheckedFunction) -> Iterator[str]:
    if isinstance(container, CheckedGraph):
        yield container.proto.name
        yield from container.initializers
    for node, record in zip(container.proto.node, container.scope.node_records, strict=True):
        yield node.name
        yield from record[4]
        for attribute in node.attribute:
            yield attribute.name
    yield from sorted(container.inputs, key=str)
    for value in declarations_in(container.proto):
        for dim in named_dims(value.type):
            yield dim.dim_param


@rule("value.order", ERROR, "IR: Nodes", "sort the nodes topologically; if impossible, they form a cycle")
def topological_order(node: CheckedNode) -> Problems:
    """A node must only read outputs of earlier nodes."""
    for name in _unknown_inputs(node):
        if _is_produced(name, node):
            yield f"input {name!r} is the output of a later node"


@rule("value.unknown", ERROR, NAMES, "correct the name, or add the value; functions cannot read graph values")
def known_inputs(node: CheckedNode) -> Problems:
    """An input must be a node output, a graph input or an initializer of this graph or an enclosing one."""
    for name in _unknown_inputs(node):
        if not _is_produced(name, node):
            yield f"input {name!r} is not a node output, graph input or initializer"


@rule("value.unique", ERROR, NAMES, "rename one of the two values, and the inputs that read it")
def unique_outputs(node: CheckedNode) -> Problems:
    """A value must be produced only once in a graph."""
    known, earlier = node.container.scope.defined_names, set[str]()
    for name in node.outputs:
        if name and (name in known or name in earlier):
            yield f"output {name!r} has the name of another value"
        earlier.add(name)


@rule("value.shadowing", ERROR, NAMES, "rename the value in the subgraph")
def shadowing(node: CheckedNode) -> Problems:
    """A node output in a subgraph must not have the name of a visible value of an enclosing graph."""
    parent = node.container.parent
    if parent is not None:
        for name in node.outputs:
            if name and name not in node.container.scope.defined_names and parent.scope.is_visible(name):
                yield f"output {name!r} has the name of a value of an enclosing graph"


@rule("value.shadowing-input", WARNING, NAMES, "rename the value in the subgraph")
def shadowing_input(graph: CheckedGraph) -> Problems:
    """An input or initializer of a subgraph should not have the name of a value of an enclosing graph."""
    if graph.parent is not None:
        # In a damaged model, names may be bytes, which cannot be compared with strings.
        for name in sorted(graph.inputs.union(graph.initializers), key=str):
            if name and graph.parent.scope.is_visible(name):
                yield f"{name!r} has the name of a value of an enclosing graph"


def _is_produced(name: str, node: CheckedNode) -> bool:
    return any(name in container.produced for container in node.container.with_enclosing())


def _unknown_inputs(node: CheckedNode) -> list[str]:
    scope = node.container.scope
    # Fast path, because nearly all inputs are values of the same graph.
    if scope.defined_names.issuperset(node.inputs):
        return []
    return [name for name in node.inputs if not scope.is_visible(name)]
