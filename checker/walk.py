"""Walk over a model that applies the rules for each kind of object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opshift.checker.checked_nodes import (
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
from opshift.checker.checked_values import Newer, Typed
from opshift.checker.containers import Container, Function, Graph, Model
from opshift.checker.findings import Finding, Level
from opshift.checker.rule_table import rules_of
from opshift.model.graphs import DEEPEST
from opshift.model.tensors import EXTERNAL

UNREADABLE = frozenset(("graph.depth", "model.text"))
"""Rules that a model must keep before the search for IR features can read all of it."""


class Walk:
    """Check of one model.

    Attributes:
        findings: the violations; those of a graph follow those of its contents, and the model's are last.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def run(self, model: Model) -> None:
        """Check everything in a model."""
        main = Graph(model.proto.graph, "graph", model, model.opsets, is_top=True)
        if model.proto.HasField("graph"):
            self._graph(main)
        for index, info in enumerate(model.proto.training_info):
            self._training(Training(info, index, model), main)
        for proto in model.proto.functions:
            self._function(Function(proto, model))
        # The rule against recursion needs the calls that the walk over functions collects.
        self.judge(model)
        if not any(finding.rule in UNREADABLE for finding in self.findings):
            self.judge(Newer(model))

    def judge(self, target: Any) -> bool:
        """Record the problems of one object.

        Returns:
            Whether it breaks no rule of level error.
        """
        is_valid = True
        for rule in rules_of(target.__class__):
            for problem in rule.judge(target):
                self.findings.append(rule.finding(target, problem))
                is_valid = is_valid and rule.level is not Level.ERROR
        return is_valid

    def _check_cached(self, target: Call | Attribute | Typed, model: Model) -> bool:
        """Check an object unless one with the same cache key broke no rule.

        Problems are not cached: each object with a problem has its own findings.
        """
        key = target.form
        if key in model.clean:
            return True
        count = len(self.findings)
        is_valid = self.judge(target)
        if key is not None and len(self.findings) == count:
            model.clean.add(key)
        return is_valid

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
                # The main graph is the parent: training graphs can read its values.
                self._graph(Graph(graph, f"{training.place}.{part}", model, model.opsets, main, is_top=True))
        self.judge(training)

    def _values(self, values: Iterable[Any], container: Container, role: str) -> None:
        for value in values:
            self.judge(Value(value, container, role))

    def _nodes(self, container: Container) -> None:
        model = container.model
        for proto in container.proto.node:
            node = Node(proto, container)
            # `&` instead of `and`: both checks run, so that one node can have findings of both.
            if not (self.judge(node) & self._check_cached(Call(node), model)):
                container.mark_broken()
            for attribute in proto.attribute:
                self._attribute(Attribute(attribute, node))
            # After the checks and the subgraphs: none of them may see the node's own outputs.
            container.add(node)
            if proto.device_configurations:
                self.judge(Placement(node))
            if node.operator is not None and not container.is_broken:
                self._check_cached(Typed(node, node.operator), model)

    def _attribute(self, attribute: Attribute) -> None:
        if not self._check_cached(attribute, attribute.node.container.model):
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
