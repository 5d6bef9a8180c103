"""One walk through a model: each thing in it is judged once by the rules for its kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opshift.adapters.tensors import EXTERNAL
from opshift.converter.legality.containers import Container, Function, Graph, Model
from opshift.converter.legality.findings import Finding, Level
from opshift.converter.legality.ir import Newer
from opshift.converter.legality.rules import rules_of
from opshift.converter.legality.subjects import (
    Attribute,
    Call,
    External,
    Internal,
    Node,
    Placement,
    SparseTensor,
    Tensor,
    Training,
    Value,
)
from opshift.converter.legality.typed import Typed
from opshift.converter.survey import DEEPEST

UNREADABLE = frozenset(("graph.depth", "model.text"))
"""Rules whose breach keeps other parts of the project from reading a model to its end."""


class Walk:
    """Judges a model.

    Attributes:
        findings: what is wrong; a graph comes after what is in it, the model at the end.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def run(self, model: Model) -> None:
        """Judge everything in a model."""
        main = Graph(model.proto.graph, "graph", model, model.opsets, is_top=True)
        if model.proto.HasField("graph"):
            self._graph(main)
        for index, info in enumerate(model.proto.training_info):
            self._training(Training(info, index, model), main)
        for proto in model.proto.functions:
            self._function(Function(proto, model))
        self.judge(model)
        if not any(each.rule in UNREADABLE for each in self.findings):
            self.judge(Newer(model))

    def judge(self, subject: Any) -> bool:
        """Note what is wrong with one thing; whether it breaks no rule of level error."""
        is_sound = True
        for rule in rules_of(subject.__class__):
            for flaw in rule.judge(subject):
                self.findings.append(rule.finding(subject, flaw))
                is_sound = is_sound and rule.level is not Level.ERROR
        return is_sound

    def _judge_form(self, subject: Call | Attribute | Typed, model: Model) -> bool:
        """As `judge`; of things that say the same and break no rule, only the first is looked at."""
        form = subject.form
        if form in model.clean:
            return True
        before = len(self.findings)
        is_sound = self.judge(subject)
        if form is not None and len(self.findings) == before:
            model.clean.add(form)
        return is_sound

    def _graph(self, graph: Graph) -> None:
        proto = graph.proto
        for role, values in (("input", proto.input), ("value", proto.value_info), ("output", proto.output)):
            self._values(values, graph, role)
        for tensor in proto.initializer:
            self._tensor(Tensor(tensor, graph, "initializer", graph.model))
        for sparse in proto.sparse_initializer:
            self._sparse(SparseTensor(sparse, graph, "sparse initializer", graph.model))
        if graph.depth <= DEEPEST:
            self._nodes(graph)
        self.judge(graph)

    def _function(self, function: Function) -> None:
        self._values(function.proto.value_info, function, "value")
        self._nodes(function)
        self.judge(function)

    def _training(self, training: Training, main: Graph) -> None:
        model = training.model
        for part in ("initialization", "algorithm"):
            if training.proto.HasField(part):
                graph = getattr(training.proto, part)
                self._graph(Graph(graph, f"{training.place}.{part}", model, model.opsets, main, is_top=True))
        self.judge(training)

    def _values(self, values: Iterable[Any], container: Container, role: str) -> None:
        for value in values:
            self.judge(Value(value, container, role))

    def _nodes(self, container: Container) -> None:
        model = container.model
        for proto in container.proto.node:
            node = Node(proto, container)
            if not (self.judge(node) & self._judge_form(Call(node), model)):
                container.mark_broken()
            for attribute in proto.attribute:
                self._attribute(Attribute(attribute, node))
            container.add(node)
            if proto.device_configurations:
                self.judge(Placement(node))
            if node.operator is not None and not container.is_broken:
                self._judge_form(Typed(node, node.operator), model)

    def _attribute(self, attribute: Attribute) -> None:
        if not self._judge_form(attribute, attribute.node.container.model):
            attribute.node.container.mark_broken()
        if attribute.is_plain:
            return
        model = attribute.node.container.model
        for tensor in attribute.held("t", "tensors"):
            self._tensor(Tensor(tensor, attribute, "tensor", model))
        for sparse in attribute.held("sparse_tensor", "sparse_tensors"):
            self._sparse(SparseTensor(sparse, attribute, "sparse tensor", model))
        for graph in attribute.held("g", "graphs"):
            self._subgraph(graph, attribute)

    def _subgraph(self, proto: Any, attribute: Attribute) -> None:
        outer = attribute.node.container
        node = attribute.node.proto
        place = f"{outer.place} / {node.name or node.op_type}.{attribute.proto.name}"
        graph = Graph(proto, place, outer.model, outer.opsets, outer)
        self._graph(graph)
        outer.used |= graph.used

    def _tensor(self, tensor: Tensor) -> None:
        self.judge(tensor)
        self.judge(External(tensor) if tensor.proto.data_location == EXTERNAL else Internal(tensor))

    def _sparse(self, sparse: SparseTensor) -> None:
        self.judge(sparse)
        for part in ("values", "indices"):
            if sparse.proto.HasField(part):
                self._tensor(Tensor(getattr(sparse.proto, part), sparse, part, sparse.model))
