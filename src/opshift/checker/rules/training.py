"""Rules for training information: the bindings from initializers to outputs of the training graphs."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from opshift.checker.checked_nodes import CheckedTraining
from opshift.checker.containers import CheckedGraph
from opshift.checker.findings import ERROR, WARNING, repeated
from opshift.checker.rule_table import Problems, rule
from opshift.model.messages import StringStringEntryProto
from opshift.model.types import shape_to_string, shapes_conflict

SOURCE = "IR: Training Related Information"


class TrainingStep(NamedTuple):
    """Initialization or training step; the new values of its bindings must be in `outputs`.

    `graph` is `None` if the step has no graph.
    """

    field: str
    bindings: Sequence[StringStringEntryProto]
    graph: CheckedGraph | None
    outputs: set[str]


@rule("training.binding-unique", ERROR, SOURCE, "keep one binding for each initializer")
def binding_unique(training: CheckedTraining) -> Problems:
    """An initializer must be bound only once in each step."""
    for step in _training_steps(training):
        for key, count in repeated(binding.key for binding in step.bindings):
            yield f"{step.field} has {count} entries for {key!r}"


@rule("training.binding-key", ERROR, SOURCE, "name an initializer of the model or the algorithm")
def binding_key(training: CheckedTraining) -> Problems:
    """A binding must update an initializer of the main graph or of the algorithm."""
    for step in _training_steps(training):
        for binding in step.bindings:
            if _graph_of(binding.key, training) is None:
                yield f"{step.field} updates {binding.key!r}, which is not an initializer"


@rule("training.binding-value", ERROR, SOURCE, "name an output of the graph of the step")
def binding_value(training: CheckedTraining) -> Problems:
    """The new value of a binding must be an output of the step."""
    for step in _training_steps(training):
        for binding in step.bindings:
            if binding.value not in step.outputs:
                problem = f"{binding.value!r}, which is not an output of the step"
                yield f"{step.field} sets {binding.key!r} to {problem}"


@rule("training.binding-update", WARNING, SOURCE, "return the value from the algorithm, too")
def binding_update(training: CheckedTraining) -> Problems:
    """The new value of an update should be an output of the algorithm, not of the main graph."""
    own = {value.name for value in training.proto.algorithm.output}
    main = {value.name for value in training.main.proto.output}
    for binding in training.proto.update_binding:
        if binding.value in main - own:
            yield f"update_binding sets {binding.key!r} to {binding.value!r}, an output of the main graph"


@rule("training.binding-type", ERROR, SOURCE, "bind a value with the type and the shape of the initializer")
def binding_type(training: CheckedTraining) -> Problems:
    """The new value of a binding must have the element type and the shape of the initializer."""
    for step in _training_steps(training):
        for key, value in ((binding.key, binding.value) for binding in step.bindings):
            holder, graph = _graph_of(key, training), step.graph
            if holder is None or graph is None or graph.is_invalid or value not in step.outputs:
                continue
            old_type, new_type = holder.scope.element_type(key), graph.scope.element_type(value)
            if old_type and new_type and old_type != new_type:
                yield f"{step.field} sets {key!r}, which is {old_type}, to {value!r}, which is {new_type}"
            old, new = holder.scope.shape(key), graph.scope.shape(value)
            if old is not None and new is not None and shapes_conflict(old, new):
                shapes = f"of shape {shape_to_string(old)}, to {value!r} of shape {shape_to_string(new)}"
                yield f"{step.field} sets {key!r} {shapes}"


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


def _training_steps(training: CheckedTraining) -> Iterator[TrainingStep]:
    proto, graphs = training.proto, training.graphs
    initial = {value.name for value in proto.initialization.output}
    yield TrainingStep(
        "initialization_binding", proto.initialization_binding, graphs.get("initialization"), initial
    )
    outputs = {value.name for value in (*proto.algorithm.output, *training.main.proto.output)}
    yield TrainingStep("update_binding", proto.update_binding, graphs.get("algorithm"), outputs)


def _graph_of(key: str, training: CheckedTraining) -> CheckedGraph | None:
    """Return the first of algorithm and main graph that has the dense initializer `key`; else `None`."""
    graphs = (training.graphs.get("algorithm"), training.main)
    return next((each for each in graphs if each and each.scope.initializer(key)), None)
