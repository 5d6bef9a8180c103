"""Kinds of facts about values, and the caches of inferred facts that models share."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple

from opshift.inference.facts import FactT, InferenceScope
from opshift.model.node import Node
from opshift.model.node_key import MAX_KEYS, NodeKey, is_small_key
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry

Link = int | None
"""Position of the input that shares its fact with the first output, `MAXIMUM`, or `None`."""

MAXIMUM = -1
"""Link to all inputs: the fact is the maximum over them, as for ranks under broadcasting."""

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
        asks_inputs: whether the facts about the outputs of an operator depend on those about its inputs.
        link: input of an operator that always shares its fact with the first output, or `MAXIMUM`.
        infer: facts about the outputs of a node.
        infer_alone: facts that follow from attributes and constants alone, without those about the inputs.
    """

    query: Callable[[InferenceScope, str], FactT | None]
    declared: Callable[[InferenceScope, str], FactT | None]
    claimed: Callable[[InferenceScope, str], FactT | None]
    needs_claim: Callable[[FactT | None], bool]
    merge: Callable[[FactT | None, FactT | None], FactT | None]
    trusts_claims: bool
    asks_inputs: Callable[[OperatorVersion], bool]
    link: Callable[[OperatorVersion], Link]
    infer: Callable[[Node, OperatorVersion, InferenceScope], Inferred[FactT]]
    infer_alone: Callable[[Node, OperatorVersion, InferenceScope], Sequence[FactT | None]] | None = None


class OperatorInfo(NamedTuple):
    """Operator of the default domain at one opset.

    Attributes:
        takes_maximum: whether the fact about the only output is the maximum over the inputs.
        is_plain: whether facts inferred for a node hold for every node with the same key.
        asks_inputs: whether the facts about the outputs depend on those about the inputs.
    """

    operator: OperatorVersion | None
    takes_maximum: bool
    is_plain: bool
    asks_inputs: bool


class InferenceCache:
    """Cache of facts of one kind at one opset, and operators of the default domain, shared between models.

    The facts about the outputs of dependent operators do not follow from their nodes alone.
    """

    def __init__(self) -> None:
        self.operators: dict[str, OperatorInfo] = {}
        self.links: dict[str, int] = {}
        """Position of the input that shares its fact with the first output, by op_type."""
        self.links_of_all: dict[str, int] = {}
        """The same, for operators whose outputs all share it."""
        self.dependent: set[str] = set()
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
