"""Facts and workspace for the steps of one node, with a record of the steps' queries and requests."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from opshift.inference.facts import ListedSize
from opshift.model.messages import GraphProto
from opshift.model.node import Graph, Node, Tensor
from opshift.model.types import Shape
from opshift.registry.steps import Allow
from opshift.rewriting.cached_rewrite import Question, mentions_any
from opshift.rewriting.result import ComputedRewrite
from opshift.rewriting.workspace import Workspace

SHAPE_PROPAGATION_OPSET = 14
"""First opset in which onnx infers the output shapes of most nodes with computed shape inputs."""

SHAPED_BY_INPUTS = frozenset(("Expand", "Loop", "Reshape", "Tile"))
"""Operators for which onnx infers no output shapes from computed inputs below `SHAPE_PROPAGATION_OPSET`."""

PREMISES_OF_PRODUCERS = {
    "is_nonnegative": "is_nonnegative",
    "nonzero_elements": "element_bounds",
    "uniform_element": "uniform_element",
}
"""Maps a question about an emitted value to the fact about the node's inputs that determines the answer."""


class FactRecorder:
    """Facts and workspace for the steps of one node, with a record of the queries and requests.

    `fresh_names` maps each name that the steps requested to its hint. If `is_complete`, the outcome depends
    only on recorded facts about the node's inputs and outputs, so it holds for other nodes with the same
    answers. A rewrite is cached only if `is_reusable` is true, too: nothing in it is specific to the node.
    """

    def __init__(self, workspace: Workspace, names: tuple[str, ...], input_count: int) -> None:
        self._input_count = input_count
        self._scope = workspace.scope
        self._workspace = workspace
        self._names = names
        self._positions = {name: position for position, name in enumerate(names) if name}
        self.answers: dict[Question, Any] = {}
        self.fresh_names: dict[str, str] = {}
        self.constants: dict[str, Tensor] = {}
        self.shaped: dict[str, int | None] = {}
        self.allowed: list[tuple[Allow, str]] = []
        """Allowed deviations that the steps used, each with its reason."""
        self.additions: Counter[str] = Counter()
        """Number of times that the steps added each constant."""
        self.inspected: set[str] = set()
        """Added constants whose values the steps query."""
        self.is_complete = True
        self.is_reusable = True
        self.is_shared = True
        """Whether a cached rewrite holds in other models, too."""
        self._asked: set[str] = set()
        """Questions that `_query_each` has asked about the node's values."""
        self._reads_outputs = False
        """Whether an emitted node reads an output of the node."""

    def element_type(self, name: str) -> str | None:
        """Query `Facts.element_type`, and record the answer or, for an emitted value, the node's types."""
        if name not in self.fresh_names:
            constant = self.answers.get(Question("constant", self._positions.get(name, -1)))
            if constant is not None:  # the recorded constant contains the type
                return constant.element_type  # type: ignore[no-any-return]
            return self._query("element_type", name)  # type: ignore[no-any-return]
        # Inference derives the type of an emitted value from the element types of the node's values.
        self._query_each("element_type", self._positions)
        return self._scope.element_type(name)

    def shape(self, name: str) -> Shape | None:
        """Query and record `Facts.shape`."""
        return self._query("shape", name)  # type: ignore[no-any-return]

    def comparable_shapes(self, names: Sequence[str]) -> tuple[Shape | None, ...]:
        """Query and record `Facts.comparable_shapes`."""
        return self._query_jointly("comparable_shapes", names)  # type: ignore[no-any-return]

    def listed_sizes(self, names: Sequence[str]) -> tuple[ListedSize, ...] | None:
        """Query and record `Facts.listed_sizes`."""
        return self._query_jointly("listed_sizes", names)  # type: ignore[no-any-return]

    def rank(self, name: str) -> int | None:
        """Query and record `Facts.rank`."""
        return self._query("rank", name)  # type: ignore[no-any-return]

    def rank_so_far(self, name: str) -> int | None:
        """Query `Facts.rank_so_far`."""
        # Not recorded: steps whose result depends on the rank query `rank`.
        return self._scope.rank_so_far(name)

    def constant(self, name: str) -> Tensor | None:
        """Query and record `Facts.constant`."""
        return self._query("constant", name)  # type: ignore[no-any-return]

    def is_nonnegative(self, name: str) -> bool:
        """Query and record `Facts.is_nonnegative`."""
        return self._query("is_nonnegative", name)  # type: ignore[no-any-return]

    def nonzero_elements(self, name: str) -> tuple[bool, ...] | None:
        """Query and record `Facts.nonzero_elements`."""
        return self._query("nonzero_elements", name)  # type: ignore[no-any-return]

    def uniform_element(self, name: str) -> Tensor | None:
        """Query and record `Facts.uniform_element`."""
        return self._query("uniform_element", name)  # type: ignore[no-any-return]

    def is_used(self, name: str) -> bool:
        """Query `Facts.is_used`, and record the answer unless the value was emitted."""
        if name in self.fresh_names:  # not recorded: the answer depends only on the emitted nodes
            return self._scope.is_used(name)
        return self._query("is_used", name)  # type: ignore[no-any-return]

    def nested_shape(self, graph: GraphProto, name: str) -> Shape | None:
        """Return the shape of a value in a subgraph; prevent caching: subgraphs are specific to a node."""
        self.is_complete = False
        return self._scope.nested_shape(graph, name)

    def is_visible(self, name: str) -> bool:
        """Return whether a value is visible; prevent caching: names in subgraphs are specific to a node."""
        self.is_complete = False
        return self._scope.is_visible(name)

    def fresh(self, hint: str) -> str:
        """Return a new name, see `Workspace.fresh`, and record its hint."""
        # A hint that starts with a name of the node differs for other nodes, so the rewrite cannot be cached.
        found = self._workspace.fresh(hint)
        self.fresh_names[found] = hint
        self.is_reusable &= self._positions.keys().isdisjoint(_starts_of(hint))
        return found

    def add_constant(self, tensor: Tensor) -> str:
        """Add a constant, see `Workspace.add_constant`, and record it."""
        found = self._workspace.add_constant(tensor)
        self.constants[found] = tensor
        self.additions[found] += 1
        return found

    def declare_shape(self, name: str, rank: int | None = None) -> None:
        """Declare the shape of a value of the node, see `Workspace.declare_shape`, and record the request."""
        if name in self._positions:  # shapes of emitted values are not declared
            self.shaped[name] = self.shaped.get(name) if rank is None else rank
            self._workspace.declare_shape(name, rank)

    def declare_uninferred_shapes(self, result: ComputedRewrite) -> None:
        """Declare the shapes that emitted nodes of `SHAPED_BY_INPUTS` compute: onnx does not infer them.

        onnxruntime fuses a normalization or the addition of a bias only if the last dimension is known.
        """
        for node in (each.node for each in result.nodes):
            is_computed = not self.constants.keys() >= {*node.inputs[1:]}
            if node.op_type in SHAPED_BY_INPUTS and is_computed and node.op_type != result.original.op_type:
                for name in node.outputs:
                    self.declare_shape(name)

    def allow(self, kind: Allow, reason: str) -> bool:
        """Return whether the caller allows a deviation; prevent caching if the reason names a value."""
        is_allowed = self._workspace.allow(kind, reason)
        if is_allowed:
            self.allowed.append((kind, reason))
            names = (*self._positions, *self.fresh_names, *self.constants)
            self.is_reusable &= not mentions_any(reason, names)
        return is_allowed

    def is_allowed(self, kind: Allow) -> bool:
        """Return whether the caller allows a deviation, see `Workspace.is_allowed`."""
        return self._workspace.is_allowed(kind)

    def constant_type(self, name: str) -> str | None:
        """Return the type of an added constant, see `Workspace.constant_type`."""
        return self._workspace.constant_type(name)

    @property
    def constant_bytes(self) -> int:
        """Size of all added constants in bytes, see `Workspace.constant_bytes`."""
        return self._workspace.constant_bytes

    def add_emitted(self, node: Node, opset: int) -> None:
        """Add an emitted node, see `Workspace.add_emitted`."""
        # The node is not recorded: queries about its outputs record the facts that they depend on.
        self._watch(node)
        self._workspace.add_emitted(node, opset)

    def add_graph(self, graph: Graph) -> None:
        """Make the values of an emitted graph available to inference."""
        for each in (*graph.nodes, *graph.nodes_after):
            self._watch(each.node)
        # Do not reuse a subgraph of the model, nor share graphs, whose attributes may refer to the model.
        self.is_reusable &= graph.embedded is None
        self.is_shared = False
        self._workspace.add_graph(graph)

    def _watch(self, node: Node) -> None:
        self._reads_outputs |= any(self._positions.get(name, -1) >= self._input_count for name in node.inputs)

    @property
    def names(self) -> set[str]:
        """All names of the rewrite that can be replaced by the names of another node."""
        return {*self._names, *self.fresh_names, *self.constants, ""}

    def _query(self, question: str, name: str) -> Any:
        answer = getattr(self._scope, question)(name)
        position = self._positions.get(name)
        if position is not None:
            self.answers[Question(question, position)] = answer
        elif name not in self.constants:
            self._query_premises(question)
        # Element type and rank do not depend on the elements of the constant.
        elif question not in ("element_type", "rank"):
            self.inspected.add(name)
        return answer

    def _query_premises(self, question: str) -> None:
        """Record the facts about the inputs from which inference derives the facts about emitted values."""
        self.is_complete &= not self._reads_outputs
        names = self._names[: self._input_count]
        self._query_each("element_type", self._positions)
        self._query_each("rank", names)
        premises = Question("premises", 0, self._input_count)
        if premises not in self.answers:
            self.answers[premises] = self._scope.premises(names)
            # Do not share a rewrite that depends on the `id` of a tensor of this model.
            self.is_shared &= not any(isinstance(self._scope.elements_or_id(name), int) for name in names)
            if any(map(self._scope.has_computed_sizes, names)):
                self._query_each("symbolic_shape", names)
                self._query_each("elements_or_id", names)
        if question in PREMISES_OF_PRODUCERS:
            self._query_each(PREMISES_OF_PRODUCERS[question], names)

    def _query_each(self, question: str, names: Iterable[str]) -> None:
        """Query and record a fact about values of the node, unless a previous call did."""
        if question not in self._asked:
            self._asked.add(question)
            for name in filter(None, names):
                self._query(question, name)

    def _query_jointly(self, question: str, names: Sequence[str]) -> Any:
        answer = getattr(self._scope, question)(names)
        start = self._names.index(names[0]) if names and names[0] in self._positions else None
        if start is not None and self._names[start : start + len(names)] == tuple(names):
            self.answers[Question(question, start, start + len(names))] = answer
        else:
            self._query_premises(question)
        return answer


def _starts_of(hint: str) -> Iterator[str]:
    """Yield each prefix of a hint that ends before a character other than a letter, and the whole hint."""
    return (hint[:end] for end in range(1, len(hint) + 1) if not hint[end : end + 1].isalpha())
