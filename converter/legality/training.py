"""Rules for training information: which initializers are set by which outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from opshift.converter.legality.findings import ERROR, WARNING
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.legality.subjects import Training

SOURCE = "IR: Training Related Information"


@rule("training.binding-unique", ERROR, source=SOURCE, remedy="keep one binding for each initializer")
def binding_unique(training: Training) -> Flaws:
    """An initializer is bound once in each step."""
    for field, bindings, _ in _bindings(training):
        for key, count in Counter(each.key for each in bindings).items():
            if count > 1:
                yield f"{field} has {count} entries for {key!r}"


@rule(
    "training.binding-key", ERROR, source=SOURCE, remedy="name an initializer of the model or the algorithm"
)
def binding_key(training: Training) -> Flaws:
    """What is set is an initializer of the model's graph or of the algorithm."""
    graphs = (training.model.proto.graph, training.proto.algorithm)
    known = {each.name for graph in graphs for each in graph.initializer}
    for field, bindings, _ in _bindings(training):
        for each in bindings:
            if each.key not in known:
                yield f"{field} sets {each.key!r}, which is no initializer"


@rule("training.binding-value", ERROR, source=SOURCE, remedy="name an output of the step's graph")
def binding_value(training: Training) -> Flaws:
    """What it is set to is an output of the step."""
    for field, bindings, known in _bindings(training):
        for each in bindings:
            if each.value not in known:
                yield f"{field} sets {each.key!r} to {each.value!r}, which is no output of the step"


@rule(
    "training.initialization",
    WARNING,
    source="onnx.proto: TrainingInfoProto.initialization",
    remedy="make initializers of the inputs",
)
def initialization(training: Training) -> Flaws:
    """The graph that initializes has no inputs."""
    inputs = training.proto.initialization.input
    if inputs:
        yield f"the initialization has {len(inputs)} inputs"


def _bindings(training: Training) -> Iterator[tuple[str, Any, set[str]]]:
    """Each field of bindings, its entries, and the outputs that may be bound."""
    proto = training.proto
    first = {each.name for each in proto.initialization.output}
    yield "initialization_binding", proto.initialization_binding, first
    outputs = (*proto.algorithm.output, *training.model.proto.graph.output)
    yield "update_binding", proto.update_binding, {each.name for each in outputs}
