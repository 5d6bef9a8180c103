"""Facts about the values of a model that several plans of the same model share."""

from collections.abc import Callable, Hashable

from opshift.inference.scope import Scope
from opshift.inference.survey import NodeFields
from opshift.model.graphs import ContainerProto, read_node_records
from opshift.model.messages import GraphProto, ModelProto
from opshift.registry.registry import Registry


class SharedFacts:
    """Facts about the values of one main graph and its subgraphs, passed from each plan to the next one.

    The graph must not change between the plans. Facts do not depend on the target opsets, and inferring them
    takes most of the time of a plan.
    """

    def __init__(self, graph: GraphProto) -> None:
        self._graph = graph
        self._scope: Scope | None = None
        self._added: set[str] = set()
        self._answers: dict[Hashable, bool] = {}
        self._fields: list[NodeFields] = []

    def node_fields(self, container: ContainerProto) -> list[NodeFields] | None:
        """Return the fields of the nodes of the main graph, read once; `None` for another container."""
        if container is not self._graph:
            return None
        if not self._fields:
            records = read_node_records(self._graph)
            self._fields = [
                (op_type, domain, inputs, outputs) for _, domain, op_type, inputs, outputs in records
            ]
        return self._fields

    def is_true(
        self, question: Callable[[ModelProto, Registry], bool], model: ModelProto, registry: Registry
    ) -> bool:
        """Return the answer to a question about a model, cached if its main graph is that of the facts."""
        if model.graph is not self._graph:
            return question(model, registry)
        if question not in self._answers:
            self._answers[question] = question(model, registry)
        return self._answers[question]

    def move_to(self, scope: Scope, added: set[str]) -> None:
        """Move the known facts to the scope of the next plan.

        Args:
            scope: scope of a main graph; facts about other graphs, such as changed copies, are not shared.
            added: the set of names that this plan adds to the model; the plan may extend it later.
        """
        if scope.container is not self._graph:
            return
        earlier = self._scope
        # Other constant inputs (see `freed_initializers`) give other facts about constants: infer them again.
        if earlier is not None and earlier.constant_inputs == scope.constant_inputs:
            scope.take_facts(earlier, self._added)
        self._scope, self._added = scope, added
