"""Rules for training information: the bindings from initializers to outputs of the training graphs."""

from collections.abc import Iterator, Sequence

from opshift.checker.checked_nodes import CheckedTraining
from opshift.checker.findings import ERROR, WARNING, repeated
from opshift.checker.rule_table import Problems, rule
from opshift.model.messages import StringStringEntryProto

SOURCE = "IR: Training Related Information"


@rule("training.binding-unique", ERROR, SOURCE, "keep one binding for each initializer")
def binding_unique(training: CheckedTraining) -> Problems:
    """An initializer must be bound only once in each step."""
    for field, bindings, _ in _bindings(training):
        for key, count in repeated(binding.key for binding in bindings):
            yield f"{field} has {count} entries for {key!r}"


@rule("training.binding-key", ERROR, SOURCE, "name an initializer of the model or the algorithm")
def binding_key(training: CheckedTraining) -> Problems:
    """A binding must update an initializer of the main graph or of the algorithm."""
    graphs = (training.model.proto.graph, training.proto.algorithm)
    initializers = {tensor.name for graph in graphs for tensor in graph.initializer}
    for field, bindings, _ in _bindings(training):
        for binding in bindings:
            if binding.key not in initializers:
                yield f"{field} updates {binding.key!r}, which is not an initializer"


@rule("training.binding-value", ERROR, SOURCE, "name an output of the graph of the step")
def binding_value(training: CheckedTraining) -> Problems:
    """The new value of a binding must be an output of the step."""
    for field, bindings, outputs in _bindings(training):
        for binding in bindings:
            if binding.value not in outputs:
                yield f"{field} sets {binding.key!r} to {binding.value!r}, which is not an output of the step"


@rule(
    "training.initialization",
    WARNING,
    "onnx.proto: TrainingInfoProto.initialization",
    "replace the inputs by initializers",
)
def initialization(training: CheckedTraining) -> Problems:
    """The initialization graph should not have inputs."""
    inputs = training.proto.initialization.input
    if inputs:
        yield f"the initialization has {len(inputs)} inputs"


def _bindings(training: CheckedTraining) -> Iterator[tuple[str, Sequence[StringStringEntryProto], set[str]]]:
    """Yield the name of each field of bindings, its entries, and the outputs that they may refer to."""
    proto = training.proto
    initial = {value.name for value in proto.initialization.output}
    yield "initialization_binding", proto.initialization_binding, initial
    outputs = (*proto.algorithm.output, *training.model.proto.graph.output)
    yield "update_binding", proto.update_binding, {value.name for value in outputs}
