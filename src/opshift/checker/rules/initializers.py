"""Rules for initializers: their names, and the types and shapes that the graph declares for them."""

from opshift.checker.containers import CheckedGraph
from opshift.checker.findings import ERROR, INFO, WARNING, duplicate_names, list_names
from opshift.checker.ir_features.use import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.checker.rule_table import NAMES, Problems, rule
from opshift.model.element_types import BY_NUMBER
from opshift.model.types import element_type_of, shape_of, shape_to_string, shapes_conflict

INITIALIZERS = "onnx.proto: GraphProto.initializer"


@rule("initializer.name", ERROR, INITIALIZERS, "give it the name that nodes read, or remove it")
def initializer_name(graph: CheckedGraph) -> Problems:
    """An initializer must have a name."""
    unnamed = sum(not name for name in graph.initializers)
    if unnamed:
        yield f"{unnamed} of {len(graph.initializers)} initializers have no name"


@rule("initializer.unique", ERROR, INITIALIZERS, "keep one of them")
def initializer_unique(graph: CheckedGraph) -> Problems:
    """The initializers of a graph, dense and sparse, must have unique names."""
    yield from duplicate_names("initializer", graph.initializers)


@rule(
    "initializer.is-input", ERROR, f"{NAMES}; onnx.proto: Version", "make it an input, or set ir_version to 4"
)
def initializer_is_input(graph: CheckedGraph) -> Problems:
    """An initializer must be a graph input, before IR version 4."""
    if graph.model.ir_version < FIRST_IR_WITH_STANDALONE_INITIALIZERS:
        for name in graph.initializers:
            if name and name not in graph.inputs:
                yield f"initializer {name!r} is not an input"


@rule("initializer.is-no-input", WARNING, NAMES, "remove it from the inputs or from the initializers")
def initializer_is_no_input(graph: CheckedGraph) -> Problems:
    """An initializer of a subgraph must not be an input of the subgraph, since IR version 4."""
    if not graph.is_top and graph.model.ir_version >= FIRST_IR_WITH_STANDALONE_INITIALIZERS:
        for name in graph.initializers:
            if name in graph.inputs:
                yield f"{name!r} is an initializer and an input"


@rule("initializer.type", ERROR, "IR: Graphs", "correct the declared type, or the initializer")
def initializer_type(graph: CheckedGraph) -> Problems:
    """An initializer must have the element type that the graph declares for it."""
    for tensor in graph.proto.initializer:
        declared = graph.declared_types.get(tensor.name)
        if declared is None or tensor.data_type not in BY_NUMBER:
            continue
        actual, expected = BY_NUMBER[tensor.data_type].name, element_type_of(declared)
        if expected is not None and expected != actual:
            yield f"initializer {tensor.name!r} is {actual}, but is declared as {expected}"


@rule("initializer.shape", ERROR, "IR: Graphs", "correct the declared shape, or the initializer")
def initializer_shape(graph: CheckedGraph) -> Problems:
    """An initializer must have the shape that the graph declares for it."""
    for tensor in graph.proto.initializer:
        declared = graph.declared_types.get(tensor.name)
        expected = shape_of(declared) if declared is not None else None
        if expected is not None and shapes_conflict(tuple(tensor.dims), expected):
            actual = f"initializer {tensor.name!r} has the shape {list(tensor.dims)}"
            yield f"{actual}, but is declared as {shape_to_string(expected)}"


@rule("initializer.unused", INFO, "IR: Graphs", "remove it")
def initializer_unused(graph: CheckedGraph) -> Problems:
    """An initializer should be read by a node or returned by the graph."""
    read = graph.read_names.union(output.name for output in graph.proto.output)
    unused = [name for name in graph.initializers if name not in read]
    # Bindings of training graphs update initializers by name.
    if unused and not graph.model.proto.training_info:
        yield f"has unused initializers: {list_names(unused)}"
