"""Search for the patterns whose operators match a node and the nodes that compute its inputs."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

from opshift.converter.options import EVERY_OPERATOR, Options
from opshift.converter.recognition.expansion import ValueName
from opshift.converter.recognition.graph_view import GraphView
from opshift.converter.recognition.load import operator_names, pattern_groups
from opshift.converter.recognition.matching import COMMUTATIVE
from opshift.converter.recognition.pattern_groups import NEAR_DEPTH, NodeTree, PatternGroup, pruned_tree
from opshift.converter.recognition.patterns import Pattern
from opshift.model.graphs import NodeRecord
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry

MAX_INDEXES: Final = 32
"""Maximum number of cached pattern indexes: one for each set of operators and opsets in a model."""

FAR_DEPTH: Final = 6
"""Number of steps to compare before all steps: few patterns remain, so most searches end here."""

MAX_NEIGHBORHOODS: Final = 4096
"""Maximum number of neighborhoods of nodes in a pattern index."""


class Neighborhood:
    """Operators that compute a value, in a limited number of steps; equal neighborhoods are one object."""

    __slots__ = ()


UNMATCHED: Final = Neighborhood()
"""Neighborhood of a value that no node of a pattern computes."""

UNLIMITED: Final = Neighborhood()
"""Neighborhood of a value that would need more than the allowed number of steps."""


class Candidates(NamedTuple):
    """Patterns whose trees match a node, each with its tree, and the depth of the largest tree."""

    patterns: tuple[tuple[Pattern, NodeTree], ...]
    depth: int

    @classmethod
    def of(cls, patterns: Iterable[tuple[Pattern, NodeTree]]) -> Candidates:
        """Return candidates with the depth of their largest tree."""
        found = tuple(patterns)
        return cls(found, max((tree.depth for _, tree in found), default=0))


class PatternIndex:
    """Groups of patterns by the op_type of their last node, with the results of earlier searches.

    The layers of a model, and models with the same operators, have equal neighborhoods.
    """

    def __init__(self, groups: Iterable[PatternGroup]) -> None:
        self.groups: dict[str, list[PatternGroup]] = {}
        self.op_types: set[str] = set()
        for each in groups:
            self.groups.setdefault(each.near.op_type, []).append(each)
            self.op_types |= each.op_types
        self._neighborhoods: dict[tuple[Any, ...], Neighborhood] = {}
        self.found: dict[tuple[Neighborhood, int], Candidates] = {}
        """Patterns that match within a number of steps, by the neighborhood of a node within these steps."""

    def neighborhood(self, key: tuple[Any, ...]) -> Neighborhood:
        """Return the object for a neighborhood: operator, output position, and neighborhoods of inputs."""
        found = self._neighborhoods.get(key)
        if found is None:
            if len(self._neighborhoods) >= MAX_NEIGHBORHOODS:
                self._neighborhoods.clear()
                self.found.clear()
            found = self._neighborhoods.setdefault(key, Neighborhood())
        return found


def pattern_index(
    model: ModelProto, options: Options, op_types: Set[str], wanted: Set[str] | None
) -> PatternIndex:
    """Return the index of the requested patterns whose operators are all in `op_types`.

    A pattern must contain an operator of `wanted`, unless `wanted` is `None`. Requested operators that are in
    `without`, do not exist at the model's opsets, or are hidden by a function have no patterns in the index.
    """
    imports = [*model.opset_import, *(i for each in model.functions for i in each.opset_import)]
    newest: defaultdict[str, int] = defaultdict(int)
    for each in imports:
        domain = canonical_domain(each.domain)
        newest[domain] = max(newest[domain], each.version)
    shadowed = frozenset((canonical_domain(each.domain), each.name) for each in model.functions)
    return _pattern_index(
        options.registry,
        options.recognize,
        frozenset(map(str, options.without)),
        frozenset(newest.items()),
        shadowed,
        frozenset(op_types),
        None if wanted is None else frozenset(wanted),
    )


@lru_cache(maxsize=MAX_INDEXES)
def _pattern_index(
    registry: Registry,
    requested: frozenset[str],
    without: frozenset[str],
    newest: frozenset[tuple[str, int]],
    shadowed: frozenset[tuple[str, str]],
    op_types: frozenset[str],
    wanted: frozenset[str] | None,
) -> PatternIndex:
    if wanted is not None and not wanted:
        return PatternIndex(())
    opsets = dict(newest)
    names = operator_names(registry) if EVERY_OPERATOR in requested else ()
    found: list[PatternGroup] = []
    for name in (*(f"{DEFAULT_DOMAIN}.{each}" for each in names), *sorted(requested - {EVERY_OPERATOR})):
        domain, _, op_type = name.rpartition(".")
        operator = registry.operator(op_type, domain)
        exists = operator is not None and operator.versions[0].since_version <= opsets.get(domain, 0)
        if exists and name not in without and (domain, op_type) not in shadowed:
            found += pattern_groups(op_type, domain, registry)
    return PatternIndex(
        each
        for each in found
        if each.op_types <= op_types and (wanted is None or not each.op_types.isdisjoint(wanted))
    )


class PatternSearch:
    """Search in one graph or function, with cached facts about its nodes."""

    def __init__(self, index: PatternIndex, view: GraphView) -> None:
        self._index, self._view = index, view
        self._trees: dict[tuple[NodeTree, str], bool] = {}
        self._neighborhoods: dict[tuple[str, int], Neighborhood | None] = {}
        self._positions: dict[NodeTree, list[tuple[NodeTree | None, int]]] = {}
        self._operators: dict[tuple[str, str], OperatorVersion | None] = {}

    def candidates(self, record: NodeRecord) -> Iterator[Pattern]:
        """Yield patterns whose operators match a node and the nodes before it, largest first.

        Constants and inputs are not compared.
        """
        found = self._candidates(record, NEAR_DEPTH, None)
        if found.depth > FAR_DEPTH:
            found = self._candidates(record, FAR_DEPTH, found)
        if found.depth > NEAR_DEPTH:
            found = self._candidates(record, found.depth, found)
        return (pattern for pattern, _ in found.patterns)

    def _candidates(self, record: NodeRecord, depth: int, earlier: Candidates | None) -> Candidates:
        """Return the patterns that match in `depth` steps; `earlier` has those that match in fewer steps."""
        neighborhood = self._neighborhood_of_node(record, depth)
        if neighborhood is None:
            return self._search(record, depth, earlier)
        key = neighborhood, depth
        found = self._index.found.get(key)
        if found is None:
            found = self._index.found[key] = self._search(record, depth, earlier)
        return found

    def _search(self, record: NodeRecord, depth: int, earlier: Candidates | None) -> Candidates:
        outputs = record[4]
        if earlier is not None:
            return Candidates.of(
                (pattern, tree)
                for pattern, tree in earlier.patterns
                if self._computes(pruned_tree(tree, depth), outputs[tree.output])
            )
        rows = [
            (-len(pattern.nodes), bool(pattern.approximate), position, pattern, tree)
            for position, group in enumerate(self._index.groups[record[2]])
            if group.near.output < len(outputs) and self._computes(group.near, outputs[group.near.output])
            for pattern, tree in group.patterns
        ]
        return Candidates.of((pattern, tree) for *_, pattern, tree in sorted(rows, key=itemgetter(0, 1, 2)))

    def _neighborhood_of_node(self, record: NodeRecord, depth: int) -> Neighborhood | None:
        """Return the neighborhood of all outputs of a node; `None` if it is unknown."""
        outputs = record[4]
        first = self._neighborhood(outputs[0], depth) if outputs and "" not in outputs else None
        if first is None or len(outputs) == 1:
            return first
        return self._index.neighborhood((len(outputs), first))

    def _neighborhood(self, name: str, depth: int) -> Neighborhood | None:
        """Return the neighborhood of a value; `None` if a node has subgraphs, which have no neighborhood."""
        record = self._view.producer(name) if name else None
        if record is None or record[2] not in self._index.op_types:
            return UNMATCHED
        if not depth:
            return UNLIMITED
        key = name, depth
        if key not in self._neighborhoods:
            self._neighborhoods[key] = self._find_neighborhood(name, depth, record)
        return self._neighborhoods[key]

    def _find_neighborhood(self, name: str, depth: int, record: NodeRecord) -> Neighborhood | None:
        _, domain, op_type, inputs, outputs = record
        if (op_type, domain) not in self._operators:
            self._operators[op_type, domain] = self._view.scope.operator(op_type, domain)
        operator = self._operators[op_type, domain]
        if operator is None:
            return UNMATCHED
        if operator.holds_graphs:
            return None
        nested = [self._neighborhood(each, depth - 1) for each in inputs]
        if None in nested:
            return None
        key = op_type, operator.domain, operator.since_version, outputs.index(name), *nested
        return self._index.neighborhood(key)

    def _computes(self, tree: NodeTree, name: str) -> bool:
        """Return whether the nodes that compute a value have the operators of a tree."""
        record = self._view.producer(name)
        if record is None or record[2] != tree.op_type:  # true for most values, which need no cache entry
            return False
        key = tree, name
        found = self._trees.get(key)
        if found is None:
            found = self._trees[key] = self._has_operators(tree, name, record)
        return found

    def _has_operators(self, tree: NodeTree, name: str, record: NodeRecord) -> bool:
        if canonical_domain(record[1]) != tree.domain or record[4].index(name) != tree.output:
            return False
        operands = self._operands(tree, record)
        if operands is None:
            return False
        if tree.op_type in COMMUTATIVE and len(operands) == 2:
            (one, first), (other, second) = operands
            return (self._may_compute(one, first) and self._may_compute(other, second)) or (
                self._may_compute(one, second) and self._may_compute(other, first)
            )
        return all(self._may_compute(each, value) for each, value in operands)

    def _may_compute(self, tree: NodeTree | None, name: str) -> bool:
        return tree is None or (name != "" and self._computes(tree, name))

    def _operands(self, tree: NodeTree, record: NodeRecord) -> list[tuple[NodeTree | None, str]] | None:
        """Return each operand of a tree with the value that a node reads for it; `""` if it reads none.

        The result is `None` for calls, and for operators that the registry does not contain.
        """
        positions = self._positions.get(tree)
        if positions is None:
            operator = self._view.scope.operator(record[2], record[1])
            if operator is None:  # also for calls: a function hides the operator of the same name
                return None
            if operator.holds_graphs:
                slots = self._view.slots(record) or {}
                return [(each, _name_in(slots.get(slot))) for slot, each in tree.operands]
            positions = self._positions[tree] = _operand_positions(tree, operator)
        inputs = record[3]
        count = len(inputs)
        return [(each, inputs[position] if position < count else "") for each, position in positions]


def _operand_positions(tree: NodeTree, operator: OperatorVersion) -> list[tuple[NodeTree | None, int]]:
    """Return each operand of a tree with the position of its input; a large number if there is none."""
    known = {each.name: position for position, each in enumerate(operator.inputs)}
    found: list[tuple[NodeTree | None, int]] = []
    for slot, each in tree.operands:
        name, _, position = slot.partition(":")
        found.append((each, int(position) if position else known.get(name, sys.maxsize)))
    return found


def _name_in(content: Any) -> str:
    return content.name if isinstance(content, ValueName) else ""
