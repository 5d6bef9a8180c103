"""Facts about values: the interface for adapters, the scope for inference, and the order of questions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar

from opshift.model.graphs import Container, ContainerProto, NodeRecord
from opshift.model.indirect_reads import NO_NAMED_VALUES
from opshift.model.messages import GraphProto, NodeProto
from opshift.model.node import Node, Tensor
from opshift.model.node_key import NodeKey, node_key_of
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.types import Shape
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry

if TYPE_CHECKING:
    from opshift.inference.element_bounds import ElementBounds
    from opshift.inference.evaluator.element_facts import ElementFacts

KnownT = TypeVar("KnownT")


class Answers(ABC, Generic[KnownT]):
    """Facts of one kind, such as shapes, about the values of a scope; each fact answers a question."""

    def __init__(self) -> None:
        self._known: dict[str, KnownT | None] = {}

    def is_known(self, name: str) -> bool:
        """Return whether the fact about a value is determined; it may be determined as unknown (`None`)."""
        return name in self._known

    def set_fact(self, name: str, fact: KnownT | None) -> None:
        """Store the fact about a value; `None` means unknown."""
        self._known[name] = fact

    def forget(self, names: set[str]) -> None:
        """Remove the facts about values; visit only the smaller of `names` and the known facts."""
        for name in self._known.keys() & names:
            del self._known[name]

    @abstractmethod
    def visit(self, name: str, scope: InferenceScope) -> Iterator[FactQuestion]:
        """Determine the fact about a value; yield each question that has to be answered first."""


class FactQuestion(NamedTuple):
    """Question about the value `name`: `facts` stores the answer, and `scope` contains the value."""

    facts: Answers[Any]
    name: str
    scope: InferenceScope


class Unanswered(Exception):
    """Exception: a rule needs a fact that is not determined yet; the rule is applied again afterwards."""

    def __init__(self, question: FactQuestion) -> None:
        super().__init__(question.name)
        self.question = question


ResultT = TypeVar("ResultT")

MANY_QUESTIONS = 16
"""Number of questions of a rule after which `questions_after` also yields similar questions."""


def answered(
    rule: Callable[[], ResultT], scope: InferenceScope, inputs: Sequence[str], outputs: Sequence[str]
) -> Generator[FactQuestion, None, ResultT]:
    """Apply the rule of a node, again after each question that the rule raises, and return its result."""
    number = 0
    while True:
        try:
            return rule()
        except Unanswered as error:
            number += 1
            yield from questions_after(error.question, number, scope, inputs, outputs)


def questions_after(
    question: FactQuestion, count: int, scope: InferenceScope, inputs: Sequence[str], outputs: Sequence[str]
) -> Iterator[FactQuestion]:
    """Yield question number `count` of a rule; every `MANY_QUESTIONS` questions, also yield similar ones.

    A rule is applied again after each question, which would take quadratic time for nodes with many inputs,
    or with many outputs that a body computes. Similar questions ask about the other inputs, or about the
    other outputs of the body: a subgraph of the node, or the function that it calls.
    """
    yield question
    if count % MANY_QUESTIONS:
        return
    facts, _, asked = question
    # A call may use only one of many outputs of a function: limit the number of questions.
    body_outputs = islice(asked.outputs, len(outputs) + 1) if asked.is_body_in(scope) else ()
    for name in inputs if asked is scope else body_outputs:
        if name and not facts.is_known(name):
            yield FactQuestion(facts, name, asked)


MAX_EVALUATED_ELEMENTS = 1 << 21
"""Maximum total number of elements of large values of a model that rules of the evaluator read or return.

It bounds time and memory.
"""


class Evaluation:
    """Evaluation of questions about the values of one model, shared by all its scopes.

    Only the values that an answer depends on are visited. Questions go on an explicit stack, so that Python's
    stack does not limit the length of a chain of nodes.

    Attributes:
        is_running: whether a question is being answered.
        has_dynamic_inputs: whether a main graph input has an unknown shape, or an unknown size after
            dimension 0; `None` until it is determined.
        trusted_claims: names of node outputs whose declared shapes inference uses; `None` for all.
        assumes_positive_sizes: whether sizes known only at run time are not 0; set before the first question.
        names_sizes: whether unknown sizes in the main graph get symbols; set before the first question.
        named_values: values that attributes of nodes name; set before the scope of a subgraph is created.
    """

    assumes_positive_sizes = False
    names_sizes = False

    def __init__(self) -> None:
        self.is_running = False
        self.has_dynamic_inputs: bool | None = None
        self._budget = MAX_EVALUATED_ELEMENTS
        self.trusted_claims: frozenset[str] | None = None
        self.named_values = NO_NAMED_VALUES

    def spend(self, elements: int) -> bool:
        """Return whether the model's budget suffices for a number of elements; if so, reduce the budget."""
        if elements > self._budget:
            return False
        self._budget -= elements
        return True

    def answer(self, facts: Answers[Any], name: str, scope: InferenceScope) -> None:
        """Determine the fact about a value, and first the facts that it depends on."""
        self.is_running = True
        waiting = [facts.visit(name, scope)]
        begun = {(id(facts), name)}
        try:
            while waiting:
                first = next(waiting[-1], None)
                if first is None:
                    waiting.pop()
                    continue
                facts, name, scope = first
                if facts.is_known(name):
                    continue
                if (id(facts), name) in begun:
                    # The fact depends on itself: the nodes of the invalid model form a cycle.
                    facts.set_fact(name, None)
                else:
                    begun.add((id(facts), name))
                    waiting.append(facts.visit(name, scope))
        finally:
            self.is_running = False


FactT = TypeVar("FactT")

ListedSize = int | tuple[int, ...] | None
"""Element of a list of sizes: a number, the axes of another value that have this size, or `None`."""


class Facts(Protocol):
    """Facts about the values of a model before its conversion."""

    def element_type(self, name: str) -> str | None:
        """Return an element type such as `float16`, or the type string of a non-tensor; `None` if unknown."""
        ...

    def shape(self, name: str) -> Shape | None:
        """Return the shape of a tensor, with `None` for unknown dimensions; `None` if the rank is unknown."""
        ...

    def comparable_shapes(self, names: Sequence[str]) -> tuple[Shape | None, ...]:
        """Return the shapes of tensors, with negative numbers for symbols (sizes known only at run time).

        Sizes with the same negative number are equal in every run.
        """
        ...

    def listed_sizes(self, names: Sequence[str]) -> tuple[ListedSize, ...] | None:
        """Return the sizes in the 1-D value `names[1]`; `None` if all are unknown, or the rank is not 1.

        A size known only at run time is a tuple of the axes of `names[0]` that have this size in every run.
        """
        ...

    def rank(self, name: str) -> int | None:
        """Return the rank of a tensor; `None` if it is unknown."""
        ...

    def rank_so_far(self, name: str) -> int | None:
        """Return the rank of a tensor if it is declared or was inferred before; otherwise `None`."""
        ...

    def nested_shape(self, graph: GraphProto, name: str) -> Shape | None:
        """Return the shape of a value of a subgraph of the node, in the form of `shape`."""
        ...

    def is_visible(self, name: str) -> bool:
        """Return whether the graph of the node or an enclosing graph defines a value."""
        ...

    def constant(self, name: str) -> Tensor | None:
        """Return the value if it is the same in every run, else `None`."""
        ...

    def is_nonnegative(self, name: str) -> bool:
        """Return True if an integer tensor has no negative element in any run, False if this is unknown."""
        ...

    def nonzero_elements(self, name: str) -> tuple[bool, ...] | None:
        """Return for each element of a 1-D integer tensor whether it is known to differ from 0 in every run.

        Return `None` if the length is unknown or large.
        """
        ...

    def uniform_element(self, name: str) -> Tensor | None:
        """Return the number that all elements of a tensor equal in every run, as a scalar; else `None`."""
        ...

    def is_used(self, name: str) -> bool:
        """Return whether a node or training reads the value, an attribute names it, or it is an output."""
        ...


class Producer(NamedTuple):
    """Node that produces a value, position of the value in its outputs, and its operator if it is known."""

    node: Node
    position: int
    operator: OperatorVersion | None


class OperatorStatus(NamedTuple):
    """Status of an operator: its nodes may need conversion (`has_step`), or contain subgraphs."""

    has_step: bool
    has_graphs: bool


UNAFFECTED = OperatorStatus(has_step=False, has_graphs=False)
"""Status of all operators with nodes that the conversion skips; compare with `is`."""


MAX_SEARCHED_OUTPUTS = 64
"""Maximum number of outputs of a node to search one by one; longer lists get an index."""


_SCOPE_NUMBERS: Final = count(1)
"""Numbers for `InferenceScope.value_prefix`; several threads may call `next`."""


class InferenceScope(Container, Facts):
    """Values of one graph or function, with access to the values of enclosing graphs.

    Attributes:
        opsets: opset imports, by domain.
        registry: operator definitions.
        operator_statuses: statuses of the default domain's operators at these opsets, by op_type.
        parent: scope of the enclosing graph; `None` for the main graph and for functions.
        owner: NodeProto that contains this subgraph.
        added_constants: constants that adapters added, by name.
        evaluation: `Evaluation` that answers queries for facts; all scopes of the model share it.
        node_keys: cached node keys, by position of the node.
        defined_names: names of the values that this graph defines; the survey adds the outputs of nodes.
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
        """Return the element type of a value without inference over nodes; `None` if it is unknown."""

    @abstractmethod
    def declared_shape(self, name: str) -> Shape | None:
        """Return the shape of an input or initializer; `None` if it is unknown."""

    @abstractmethod
    def declared_rank(self, name: str) -> int | None:
        """Return the rank of an input or initializer; `None` if it is unknown."""

    @abstractmethod
    def claimed_rank(self, name: str) -> int | None:
        """Return the rank that the model declares for a node's output, or `None`; it may be wrong."""

    @abstractmethod
    def claimed_shape(self, name: str) -> Shape | None:
        """Return the shape that the model declares for a node's output, or `None`; it may be wrong."""

    @abstractmethod
    def symbolic_shape(self, name: str) -> Shape | None:
        """Return the shape of a value, with symbols for sizes known only at run time; `None` if unknown."""

    @abstractmethod
    def elements(self, name: str) -> Tensor | None:
        """Return the elements of a value, with symbols for sizes known only at run time, or `None`."""

    @abstractmethod
    def small_elements(self, names: Sequence[str]) -> tuple[Tensor | None, ...] | None:
        """Return the elements of values as a cache key; `None` if a value has many elements."""

    @property
    @abstractmethod
    def element_facts(self) -> ElementFacts:
        """Return the facts about the elements of the values of this scope."""

    @property
    @abstractmethod
    def bounds_facts(self) -> ElementBounds:
        """Return the bounds of the elements of the values of this scope."""

    @cached_property
    def value_prefix(self) -> str:
        """Prefix of value names in the names of symbols: empty for the main graph, unique in other scopes.

        Values in several subgraphs, and in several calls of a function, may have the same name.
        """
        is_main = self.parent is None and not self.is_function
        return "" if is_main else f"{next(_SCOPE_NUMBERS)}\0"

    @cached_property
    def variable_prefix(self) -> str | None:
        """Prefix of dimension variables in the names of symbols; `None` if the variables are ignored.

        A dimension variable has one value in the main graph and its subgraphs, and in one call of a function.
        """
        return self.value_prefix if self.parent is None else self.parent.variable_prefix

    def child(self, graph: GraphProto) -> Self:
        """Return the scope of a subgraph of a node."""
        key = id(graph)  # the key stays unique, because the scope holds a reference to the graph
        if key not in self._children:
            statuses = self.operator_statuses
            self._children[key] = found = type(self)(graph, self.opsets, self.registry, statuses, self)
            found.variables = self.evaluation.named_values.sources
            # Constant, because the node passes no value to an input with an initializer (`passed_inputs`).
            found.constant_inputs = found.initializer_inputs()
        return self._children[key]

    def is_body_in(self, scope: InferenceScope) -> bool:
        """Return whether this is a subgraph of a node of `scope`, or a function that such a node calls."""
        return self.parent is scope

    def is_local(self, name: str) -> bool:
        """Return whether this graph or a conversion step in it, not an enclosing graph, defines the value."""
        return name in self.defined_names or name in self.emitted_producers or name in self.added_constants

    def is_visible(self, name: str) -> bool:
        """Return whether this or an enclosing graph defines a value; conversion steps do not count."""
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

    def operator_for_inference(self, op_type: str, domain: str) -> OperatorVersion | None:
        """Return the operator version for inference; for a removed operator, its last version; or `None`."""
        found = self.operator(op_type, domain)
        return found or self.registry.known_or_removed_at(op_type, self.opset_of(domain), domain)

    def producer(self, name: str) -> Producer | None:
        """Return the producer of a value in this scope; `None` if a function call or no node produces it."""
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
        return Producer(node, position, self.registry.known_or_removed_at(node.op_type, opset, node.domain))

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
        """Record a node that an adapter emitted as the producer of its outputs that are in `new_names`."""
        for position, name in enumerate(node.outputs):
            if name in new_names:
                # Keep the first node: later steps emit older operators, about which less can be inferred.
                self.emitted_producers.setdefault(name, (node, position, opset))

    def replace_producer(self, node: Node) -> None:
        """Make an emitted node the producer of its outputs, in place of the nodes that produced them."""
        for position, name in enumerate(node.outputs):
            self.emitted_producers[name] = (node, position, self.opset_of(node.domain))
            self.producing_records.pop(name, None)

    def node_key_of(self, record: NodeRecord, proto: NodeProto) -> NodeKey:
        """Return the node key of a record, cached in `node_keys`, which the rewrite cache also reads."""
        position = record[0]
        found = self.node_keys.get(position)
        if found is None:
            found = self.node_keys[position] = node_key_of(record, proto)
        return found

    def node(self, proto: NodeProto) -> Node:
        """Return a `Node` for a NodeProto of this scope, see `with_call_facts`."""
        return self.with_call_facts(Node.from_proto(proto))

    def node_of(self, record: NodeRecord) -> Node:
        """Return a `Node` for a record of this scope, see `with_call_facts`."""
        _, domain, op_type, inputs, outputs = record
        return self.with_call_facts(Node(op_type, inputs, outputs, None, domain, self.proto_of(record)))

    def with_call_facts(self, node: Node) -> Node:
        """Return a node of a function with the inputs and attributes that calls provide; here, unchanged."""
        return node

    @property
    def has_plain_nodes(self) -> bool:
        """Whether NodeProtos describe nodes completely; False in functions, where calls add attributes."""
        return True

    def arguments(self, name: str) -> Iterable[tuple[InferenceScope, str]]:
        """Return the scope and the name of each value that a call passes to a function input."""
        return ()

    def is_call(self, record: NodeRecord) -> bool:
        """Return whether a node calls a local function."""
        return False

    def infer_call(
        self, record: NodeRecord, fact: Callable[[InferenceScope, str], FactT | None]
    ) -> Sequence[FactT | None] | None:
        """Return one fact per output of a call of a function; `None` if the node is not a call."""
        return None
