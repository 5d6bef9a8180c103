"""Kinds of facts about values, and the caches of inferred facts that models share."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeAlias

from opshift.inference.facts import FactT, InferenceScope
from opshift.model.node import Node
from opshift.model.node_key import MAX_KEYS, NodeKey, is_small_key
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry

Link = int | None
"""Position of the input that shares its fact with the first output, `MAXIMUM`, or `None`."""

MAXIMUM = -1
"""Link to all inputs: the fact is the maximum over them, as for ranks under broadcasting."""

Shortcut: TypeAlias = Callable[[InferenceScope, str], FactT | None]
"""Function of a scope and the name of a value that returns a fact, or `None` if it does not find one."""

InferenceKey = tuple[int, NodeKey, tuple[Any, ...]]
"""`id` of the operator version, key of the node, and facts about its inputs."""


class Inferred(NamedTuple, Generic[FactT]):
    """Facts about the outputs of a node, in order; the last ones may be missing.

    They are cacheable if they depend only on attributes and on facts of this kind about the inputs.
    """

    facts: Sequence[FactT | None]
    is_cacheable: bool


class FactKind(NamedTuple, Generic[FactT]):
    """Kind of fact about values, with the functions that determine it.

    Attributes:
        query: fact about a value of a scope.
        declared: fact about an input or initializer of a scope, which the model declares.
        claimed: fact that the model claims about the output of a node.
        needs_claim: whether a claim can add to an inferred fact.
        merge: combination of an inferred fact with a claim.
        trusts_claims: whether a claim makes inference unnecessary.
        asked_inputs: positions of the inputs that determine the facts about the outputs; `None` for all.
        link: input of an operator that always shares its fact with the first output, or `MAXIMUM`.
        infer: facts about the outputs of a node.
        shortcut: for some operators, a function that may find the fact about an output without the facts
            about the inputs.
        completed: fact with symbols for unknown sizes, if `Evaluation.names_sizes` is set.
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
    """Operator of the default domain at one opset.

    Attributes:
        takes_maximum: whether the fact about the only output is the maximum over the inputs.
        is_plain: whether facts inferred for a node hold for every node with the same key.
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
    """Cache of facts of one kind at one opset, and operators of the default domain, shared between models."""

    def __init__(self) -> None:
        self.operators: dict[str, OperatorInfo] = {}
        self.links: dict[str, int] = {}
        """Position of the input that shares its fact with the first output, by op_type."""
        self.uncacheable: set[str] = set()
        """Operators with rules that read more than the key of the node and the facts about its inputs."""
        self.facts: dict[InferenceKey, Sequence[Any]] = {}

    def store(self, key: InferenceKey, facts: Sequence[Any]) -> None:
        """Store the facts about the outputs of a node, if its key is small."""
        # Bounds the memory of a cache that outlives the model; cleared entries are inferred again.
        if len(self.facts) >= MAX_KEYS:
            self.facts.clear()
        if is_small_key(key[1]):
            self.facts[key] = facts


@lru_cache(maxsize=256)
def inference_cache_for(kind: FactKind[Any], registry: Registry, opset: int) -> InferenceCache:
    """Return the shared inference cache for one kind of fact at an opset of the default domain."""
    return InferenceCache()
