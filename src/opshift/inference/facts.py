"""Facts about values: the interface for adapters, and the scope that inference reads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeVar

from opshift.inference.evaluation import Evaluation
from opshift.model.graphs import Container, ContainerProto, NodeRecord
from opshift.model.messages import GraphProto, NodeProto
from opshift.model.node import Node, Tensor
from opshift.model.node_key import NodeKey, node_key_of
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.types import Shape
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry

if TYPE_CHECKING:
    from opshift.inference.evaluator.element_facts import ElementFacts

FactT = TypeVar("FactT")

ListedSize = int | tuple[int, ...] | None
"""Element of a list of sizes: a number, the axes of a value that have this size, or `None` if unknown."""


class Facts(Protocol):
    """Facts about the values of a model before its conversion."""

    def element_type(self, name: str) -> str | None:
        """Return an element type such as `float16`, or a type string if the value is not a tensor.

        `None` if the type is unknown.
        """
        ...

    def shape(self, name: str) -> Shape | None:
        """Return the dimensions of a tensor, `None` for each unknown one; `None` if the rank is unknown."""
        ...

    def comparable_shapes(self, names: Sequence[str]) -> tuple[Shape | None, ...]:
        """Return the dimensions of tensors like `shape`, with negative numbers for symbolic sizes.

        Sizes with the same negative number are equal in every run.
        """
        ...

    def listed_sizes(self, names: Sequence[str]) -> tuple[ListedSize, ...] | None:
        """Return the sizes in the list `names[1]`; a size known only at run time as axes of `names[0]`."""
        ...

    def rank(self, name: str) -> int | None:
        """Return the rank of a tensor, or `None` if it is unknown."""
        ...

    def rank_so_far(self, name: str) -> int | None:
        """Return the rank of a tensor if it was inferred before, or needs no inference."""
        ...

    def nested_shape(self, graph: GraphProto, name: str) -> Shape | None:
        """Return the dimensions of a value of a GraphProto held by a node, in the form of `shape`."""
        ...

    def is_visible(self, name: str) -> bool:
        """Return whether the graph of the node or an enclosing one defines a value."""
        ...

    def constant(self, name: str) -> Tensor | None:
        """Return the value if it is the same in every run, else `None`."""
        ...

    def is_nonnegative(self, name: str) -> bool:
        """Return whether an integer tensor has no negative element in any run."""
        ...

    def uniform_element(self, name: str) -> Tensor | None:
        """Return, as a scalar, the number that all elements of a tensor have in every run, else `None`."""
        ...

    def is_used(self, name: str) -> bool:
        """Return whether a node reads the value or the graph returns it."""
        ...


class Producer(NamedTuple):
    """Node that produces a value, the value's position among its outputs, and its operator version."""

    node: Node
    position: int
    operator: OperatorVersion | None


class OperatorStatus(NamedTuple):
    """Status of an operator: whether its nodes may need conversion, and may contain subgraphs."""

    has_step: bool
    has_graphs: bool


UNAFFECTED = OperatorStatus(has_step=False, has_graphs=False)
"""Shared status of all operators that the conversion can skip; compare it with `is`."""


MAX_SEARCHED_OUTPUTS = 64
"""Maximum number of outputs of a node that are searched for a name; longer lists get an index."""


class InferenceScope(Container, Facts):
    """Values of one graph or function, with access to the values of enclosing graphs.

    Attributes:
        opsets: opset imports, by domain.
        registry: operator definitions.
        operator_statuses: statuses of the default domain's operators at these opsets.
        parent: scope of the enclosing graph; `None` for the main graph and for functions.
        owner: NodeProto that contains this subgraph.
        added_constants: constants that adapters added, by name.
        evaluation: evaluation of questions, shared by all scopes of the model.
        node_keys: keys of the nodes that inference asked for, by position.
        defined_names: names of the values of this scope; completed by the survey.
    """

    def __init__(
        self,
        container: ContainerProto,
        opsets: Mapping[str, int],
        registry: Registry,
        operator_statuses: dict[str, OperatorStatus],
        parent: InferenceScope | None = None,
    ) -> None:
        super().__init__(container)
        self.opsets = opsets
        self.registry = registry
        self.operator_statuses = operator_statuses
        self.parent = parent
        self.owner: NodeProto | None = None
        self.added_constants: dict[str, Tensor] = {}
        self.evaluation: Evaluation = parent.evaluation if parent else Evaluation()
        self.defined_names = self.predefined_names()
        self._children: dict[int, Self] = {}
        self.emitted_producers: dict[str, tuple[Node, int, int]] = {}
        self._producers: dict[str, Producer | None] = {}
        self._output_positions: dict[int, dict[str, int]] = {}
        self._operators: dict[tuple[str, str], OperatorVersion | None] = {}
        self.node_keys: dict[int, NodeKey] = {}

    @abstractmethod
    def declared_type(self, name: str) -> str | None:
        """Return the element type of a value without inference over nodes."""

    @abstractmethod
    def declared_shape(self, name: str) -> Shape | None:
        """Return the shape of an input or initializer."""

    @abstractmethod
    def declared_rank(self, name: str) -> int | None:
        """Return the rank of an input or initializer."""

    @abstractmethod
    def claimed_rank(self, name: str) -> int | None:
        """Return the rank that the model claims for a value that a node produces."""

    @abstractmethod
    def claimed_shape(self, name: str) -> Shape | None:
        """Return the shape that the model claims for a value that a node produces."""

    @abstractmethod
    def symbolic_shape(self, name: str) -> Shape | None:
        """Return the dimensions of a value, with symbols for sizes known only at run time."""

    @abstractmethod
    def elements(self, name: str) -> Tensor | None:
        """Return the elements of a value: constants, symbols for sizes known only at run time, or `None`."""

    @property
    @abstractmethod
    def element_facts(self) -> ElementFacts:
        """Return the facts about the elements of the values of this scope."""

    def child(self, graph: GraphProto) -> Self:
        """Return the scope of a subgraph of a node."""
        key = id(graph)  # stays unique, because the scope holds a reference to the graph
        if key not in self._children:
            statuses = self.operator_statuses
            self._children[key] = type(self)(graph, self.opsets, self.registry, statuses, self)
        return self._children[key]

    def is_body_in(self, scope: InferenceScope) -> bool:
        """Return whether this is a subgraph of a node of `scope`, or a function that such a node calls."""
        return self.parent is scope

    def is_local(self, name: str) -> bool:
        """Return whether the value is defined in this graph, not in an enclosing one."""
        return name in self.defined_names or name in self.emitted_producers or name in self.added_constants

    def is_visible(self, name: str) -> bool:
        """Return whether a value is defined in this or an enclosing graph."""
        scope: InferenceScope | None = self
        while scope is not None:
            if name in scope.defined_names:
                return True
            scope = scope.parent
        return False

    def opset_of(self, domain: str) -> int:
        """Return the imported opset of a domain; 0 if it is not imported."""
        return self.opsets.get(domain or DEFAULT_DOMAIN, 0)

    def operator(self, op_type: str, domain: str) -> OperatorVersion | None:
        """Return the operator version under the opset imports; `None` if the registry does not contain it."""
        key = (domain, op_type)
        if key not in self._operators:
            self._operators[key] = self.registry.known_at(op_type, self.opset_of(domain), domain)
        return self._operators[key]

    def producer(self, name: str) -> Producer | None:
        """Return the producer of a value in this scope; `None` if no node produces it."""
        if name not in self._producers:
            self._producers[name] = self._find_producer(name)
        return self._producers[name]

    def _find_producer(self, name: str) -> Producer | None:
        if name in self.emitted_producers:
            node, position, opset = self.emitted_producers[name]
        else:
            record = self.producing_records.get(name)
            if record is None:
                return None
            node, position = self.node_of(record), self.output_position(record, name)
            opset = self.opset_of(node.domain)
        return Producer(node, position, self.registry.known_at(node.op_type, opset, node.domain))

    def output_position(self, record: NodeRecord, name: str) -> int:
        """Return the position of a value among the outputs of a node."""
        position, _, _, _, outputs = record
        if len(outputs) <= MAX_SEARCHED_OUTPUTS:
            return outputs.index(name)
        positions = self._output_positions.get(position)
        if positions is None:
            positions = self._output_positions[position] = {
                each: at for at, each in reversed([*enumerate(outputs)])
            }
        return positions[name]

    def add_emitted(self, node: Node, opset: int, new_names: Set[str]) -> None:
        """Record an emitted node as the producer of its outputs in `new_names`."""
        for position, name in enumerate(node.outputs):
            if name in new_names:
                # Inference knows most about the first node: later steps use older operators.
                self.emitted_producers.setdefault(name, (node, position, opset))

    def replace_producer(self, node: Node) -> None:
        """Make an emitted node the producer of its outputs, in place of the nodes that produced them."""
        for position, name in enumerate(node.outputs):
            self.emitted_producers[name] = (node, position, self.opset_of(node.domain))
            self.producing_records.pop(name, None)

    def node_key_of(self, record: NodeRecord, proto: NodeProto) -> NodeKey:
        """Return the key of a recorded node; `node_keys` keeps it for the rewrite cache."""
        position = record[0]
        found = self.node_keys.get(position)
        if found is None:
            found = self.node_keys[position] = node_key_of(record, proto)
        return found

    def node(self, proto: NodeProto) -> Node:
        """Return the view of a NodeProto as a node of this scope."""
        return self.with_call_facts(Node.from_proto(proto))

    def node_of(self, record: NodeRecord) -> Node:
        """Return the view of a recorded node of this scope."""
        _, domain, op_type, inputs, outputs = record
        return self.with_call_facts(Node(op_type, inputs, outputs, None, domain, self.proto_of(record)))

    def with_call_facts(self, node: Node) -> Node:
        """Return a node with the facts that calls add to its NodeProto: none outside of functions."""
        return node

    @property
    def has_plain_nodes(self) -> bool:
        """Whether nodes depend on their NodeProto alone, not on calls of a function."""
        return True

    def arguments(self, name: str) -> Iterable[tuple[InferenceScope, str]]:
        """Return the values that calls pass to an input of a function, each with its scope."""
        return ()

    def is_call(self, record: NodeRecord) -> bool:
        """Return whether a node calls a function."""
        return False

    def infer_call(
        self, record: NodeRecord, fact: Callable[[InferenceScope, str], FactT | None]
    ) -> Sequence[FactT | None] | None:
        """Return one fact per output of a function call; `None` if the node is not a call."""
        return None
