"""Cached rewrites for nodes that differ in attribute values that the steps only move to constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from opshift.adapters.core.rewriter import constant_tensor, is_same_value
from opshift.model.attributes import read_attribute
from opshift.model.graphs import NodeRecord
from opshift.model.messages import AttributeProto
from opshift.model.node import AttributeTrace, Node, Tensor
from opshift.model.node_key import arity_of
from opshift.rewriting.cached_rewrite import CachedRewrite
from opshift.rewriting.workspace import ConstantKey, constant_key

AXES = ("axis", "axes")
"""Attributes whose values validation checks against the rank of the first input."""

MAX_MOVED_ELEMENTS = 1024
"""Maximum length of a list moved by a cached rewrite; for longer lists, `rewrite_node` checks its limits."""


class OpenConstant(NamedTuple):
    """Constant of a cached rewrite whose value is copied from an attribute of the node to rewrite."""

    place: int
    """Position among the constants of the rewrite."""
    position: int
    """Position of the attribute in the node."""
    element_type: str
    rank: int | None
    """Argument `rank` of `constant_tensor`, which may be `None`."""


class OpenComparison(NamedTuple):
    """Comparison of an attribute with a value; a cached rewrite applies to nodes with the same result."""

    position: int
    value: object
    is_same: bool


class MovedValues(NamedTuple):
    """Cached rewrite for nodes that differ in some attribute values, which become constants."""

    rewrite: CachedRewrite
    open_constants: Sequence[OpenConstant]
    comparisons: Sequence[OpenComparison]

    def constants(self, attributes: Sequence[AttributeProto]) -> list[tuple[ConstantKey, Tensor]] | None:
        """Return the constants for a node with these attributes; `None` if the rewrite does not apply.

        Raises:
            CannotConvert: an element type cannot represent a value.
        """
        values = list(map(read_attribute, attributes))
        for position, value, is_same in self.comparisons:
            if is_same_value(values[position], value) is not is_same:
                return None
        constants = list(self.rewrite.constants)
        for place, position, element_type, rank in self.open_constants:
            found = values[position]
            if isinstance(found, tuple) and len(found) > MAX_MOVED_ELEMENTS:
                return None
            tensor = constant_tensor(found, element_type, rank)
            constants[place] = constant_key(tensor), tensor
        return constants


def signature(record: NodeRecord, source: int, attributes: Iterable[AttributeProto]) -> tuple[object, ...]:
    """Return a key of a node: opset, operator, arity, and the names and types of the attributes."""
    _, domain, op_type, inputs, outputs = record
    kinds = [(each.name, each.type) for each in attributes]
    return (source, domain, op_type, arity_of(inputs, outputs), *kinds)


class Constants(Protocol):
    """Constants that the steps of a node added, as `FactRecorder` records them."""

    constants: dict[str, Tensor]
    additions: Counter[str]
    inspected: set[str]


def with_moved_values(
    rewrite: CachedRewrite, node: Node, trace: AttributeTrace, added: Constants
) -> tuple[MovedValues, frozenset[str]]:
    """Return a rewrite for nodes that differ in some attribute values, and the names of these attributes.

    These are the attributes whose values the steps only move or compare, and that validation does not read.
    """
    read = set(trace.reads)
    for move in trace.moves:
        # The value is fixed if steps query the constant, or if another equal value shares the constant.
        if added.additions[move.constant] > 1 or move.constant in added.inspected:
            read.add(move.attribute)
    for name, declared in rewrite.operator.attributes.items():
        if declared.values is not None or (rewrite.operator.axes and name in AXES):
            read.add(name)
    attributes = node.attributes
    places = {name: place for place, name in enumerate(attributes)}
    open_names = frozenset(name for name in attributes if name not in read and attributes[name].type)
    indices = {name: index for index, name in enumerate(added.constants)}
    open_constants = tuple(
        OpenConstant(indices[constant], places[name], added.constants[constant].element_type, rank)
        for name, constant, rank in trace.moves
        if name in open_names
    )
    comparisons = tuple(
        OpenComparison(places[name], value, is_same)
        for name, value, is_same in trace.comparisons
        if name in open_names
    )
    return MovedValues(rewrite, open_constants, comparisons), open_names


class MovedValuesTable:
    """Rewrites for nodes that differ in some attribute values but have the same `signature`."""

    MAX_GROUPS, MAX_REWRITES = 4, 512

    def __init__(self) -> None:
        # `add` replaces this list in place of changing it, because other threads iterate over the list.
        self._groups: list[tuple[tuple[int, ...], dict[tuple[bytes, ...], list[MovedValues]]]] = []
        self._count = 0

    def find(self, attributes: Sequence[AttributeProto]) -> Iterable[MovedValues]:
        """Yield the rewrites whose fixed attributes equal these attributes; other attributes may differ."""
        for fixed, rewrites in self._groups:
            key = tuple([attributes[position].SerializeToString() for position in fixed])
            yield from rewrites.get(key, ())

    def add(self, attributes: Sequence[AttributeProto], names: frozenset[str], rewrite: MovedValues) -> None:
        """Add the rewrite of a node, unless the table is full; attributes in `names` may differ."""
        fixed = tuple(position for position, each in enumerate(attributes) if each.name not in names)
        groups = dict(self._groups)
        if (fixed not in groups and len(groups) >= self.MAX_GROUPS) or self._count >= self.MAX_REWRITES:
            return
        key = tuple(attributes[position].SerializeToString() for position in fixed)
        groups.setdefault(fixed, {}).setdefault(key, []).append(rewrite)
        self._groups = list(groups.items())
        self._count += 1
