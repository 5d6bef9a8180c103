"""Kinds of facts about values (type, shape or rank), and the caches of inferred facts that models share."""

from collections.abc import Callable, Hashable, Sequence, Set
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeAlias

from opshift.inference.facts import FactT, InferenceScope
from opshift.model.node import Node
from opshift.model.node_key import MAX_KEYS, NodeKey, is_small_key
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry

Link = int | None
"""Position of the input that has the same fact as the first output, `MAXIMUM`, or `None`."""

MAXIMUM = -1
"""Link to all inputs: the output's fact is the maximum of the inputs' facts, like ranks in broadcasting."""

Shortcut: TypeAlias = Callable[[InferenceScope, str], FactT | None]
"""Function of a scope and a value name that returns the fact about the value, or `None` if not found."""

InferenceKey = tuple[int, NodeKey, tuple[Any, ...], Hashable]
"""`id` of the operator version, key of the node, facts about its inputs, and elements of some inputs.

The elements include the positions of these inputs.
"""


class Inferred(NamedTuple, Generic[FactT]):
    """Facts about the outputs of a node, in order; facts about the last outputs may be missing.

    `is_cacheable`: the facts depend only on attributes, on facts of the same kind about the inputs, and on
    the elements of the inputs at the positions `constants`.
    `is_shared`: the facts do not depend on the names of values.
    """

    facts: Sequence[FactT | None]
    is_cacheable: bool
    constants: Set[int] = frozenset()
    is_shared: bool = True


class FactKind(NamedTuple, Generic[FactT]):
    """Kind of fact about values, with the functions that determine it.

    A claim is a fact that the model declares about the output of a node, for example in `value_info`.

    Attributes:
        query: returns the fact about a value of a scope.
        declared: returns the fact that the model declares about an input or initializer of a scope.
        claimed: returns the claim about the output of a node.
        needs_claim: returns whether a claim can add to an inferred fact.
        merge: combines an inferred fact with a claim.
        trusts_claims: whether a claim makes inference unnecessary.
        asked_inputs: returns the positions of the inputs that determine the facts about the outputs; `None`
            for all.
        link: returns the `Link` of an operator.
        infer: returns the facts about the outputs of a node.
        shortcut: returns a `Shortcut` that may find a fact without the facts about the inputs, or `None`.
        completed: returns a fact with symbols for unknown sizes; used if `Evaluation.names_sizes` is set.
    """

    query: Callable[[InferenceScope, str], FactT | None]
    declared: Callable[[InferenceScope, str], FactT | None]
    claimed: Callable[[InferenceScope, str], FactT | None]
    needs_claim: Callable[[FactT | None], bool]
    merge: Callable[[FactT | None, FactT | None], FactT | None]
    trusts_claims: bool
    asked_inputs: Callable[[OperatorVersion], tuple[int, ...] | None]
    link: Callable[[OperatorVersion], Link]
    infer: Callable[[Node, OperatorVersion, InferenceScope], Inferred[FactT]]
    shortcut: Callable[[OperatorVersion], Shortcut[FactT] | None] = lambda operator: None
    completed: Callable[[FactT | None, str, InferenceScope], FactT | None] = lambda fact, name, scope: fact


# Slots are read faster than the fields of a named tuple, and a dataclass would take longer to import.
class OperatorInfo:
    """Operator version at one opset; `operator` is `None` for an unknown operator or a function.

    Attributes:
        takes_maximum: whether the fact about the only output is the maximum of the facts about the inputs.
        is_plain: whether all attributes are numbers, strings or lists of them, so facts can be cached.
        asked_inputs: positions of the inputs that determine the facts about the outputs; `None` for all.
        shortcut: function that may find the fact about an output without the facts about the inputs.
    """

    __slots__ = ("asked_inputs", "is_plain", "operator", "shortcut", "takes_maximum")

    def __init__(
        self,
        operator: OperatorVersion | None,
        *,
        takes_maximum: bool,
        is_plain: bool,
        asked_inputs: tuple[int, ...] | None,
        shortcut: Shortcut[Any] | None,
    ) -> None:
        self.operator = operator
        self.takes_maximum = takes_maximum
        self.is_plain = is_plain
        self.asked_inputs = asked_inputs
        self.shortcut = shortcut

    def queried_names(self, inputs: Sequence[str]) -> Sequence[str]:
        """Return the inputs of a node that determine the facts about its outputs."""
        if self.asked_inputs is None:
            return inputs
        return tuple([inputs[position] for position in self.asked_inputs if position < len(inputs)])


class InferenceCache:
    """Cache of inferred facts of one kind, and of the default domain's operators, at one opset."""

    def __init__(self) -> None:
        self.operators: dict[str, OperatorInfo] = {}
        self.links: dict[str, int] = {}
        """Position of the input with the same fact as the first output, by op_type."""
        self.uncacheable: set[str] = set()
        """op_types of the operators with facts that are not cacheable, see `Inferred`."""
        self.constants: dict[str, tuple[int, ...]] = {}
        """Positions of the inputs whose elements a rule reads, by op_type, in ascending order."""
        self.facts: dict[InferenceKey, Sequence[Any]] = {}

    def store(self, key: InferenceKey, facts: Sequence[Any]) -> None:
        """Store the facts about the outputs of a node, if the node key is small."""
        # Bounds the memory of a cache that outlives the model; cleared entries are inferred again.
        if len(self.facts) >= MAX_KEYS:
            self.facts.clear()
        if is_small_key(key[1]):
            self.facts[key] = facts


@lru_cache(maxsize=256)
def inference_cache_for(
    kind: FactKind[Any], registry: Registry, opset: int, *, assumes_positive_sizes: bool
) -> InferenceCache:
    """Return the shared inference cache for one kind of fact at an opset of the default domain."""
    return InferenceCache()
