"""Which steps take a node from its opset to the target; each answer is found once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from opshift.adapters.table import Adapter, Pair, adapter_table
from opshift.converter.compiled import CompiledTable, compiled_path
from opshift.converter.lineage import Edge, edge, lineage
from opshift.registry.catalogue import Registry
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.names import DEFAULT_DOMAIN, OperatorId, canonical_domain


class Route(NamedTuple):
    """Where a node stands, and the steps on its way that do something (none: it stays as it is)."""

    operator: OperatorVersion
    steps: tuple[Edge, ...]
    final: OperatorVersion
    """The version in force at the target; the node's own where a step leads away from the operator."""
    has_subgraphs: bool
    concerns: frozenset[str] | None
    """The element types without which nodes stay as they are; `None` if other things matter too."""
    older: tuple[OperatorVersion, ...]
    """The versions before the node's own."""


@lru_cache(maxsize=64)
def router_for(registry: Registry, targets: frozenset[tuple[str, int]]) -> Router:
    """The router to some targets; the routes it finds serve every model."""
    return Router(registry, CompiledTable(), dict(targets))


class Router:
    """Routes from any (operator, opset) to one set of targets, which names every domain that is imported."""

    def __init__(self, registry: Registry, table: Mapping[Pair, Adapter], targets: Mapping[str, int]) -> None:
        self._registry = registry
        self._table = table
        self._targets = dict(targets)
        self.default_opset = self._targets[DEFAULT_DOMAIN]
        self.asking: set[int] = set()
        """The opsets of the default domain from which steps have asked for facts, and are likely to again."""
        self.remembered: dict[Any, Any] = {}
        """What became of nodes on these routes, for those that rewrite more of them."""
        self._routes: dict[tuple[str, str, int], Route] = {}

    def final_opset(self, domain: str) -> int:
        """The opset at which the nodes of a domain end."""
        return self._targets[domain or DEFAULT_DOMAIN]

    def route(self, domain: str, op_type: str, opset: int) -> Route:
        """The way of one operator from one opset.

        Raises:
            ResolveError: the node names no operator at its opset.
            DefinitionError: a step of the operator is wrong.
        """
        key = (domain, op_type, opset)
        found = self._routes.get(key)
        if found is None:
            found = self._routes[key] = self._find(canonical_domain(domain), op_type, opset)
        return found

    def _find(self, domain: str, op_type: str, opset: int) -> Route:
        operator = self._registry.get_schema(op_type, opset, domain)
        has_subgraphs = any(
            attribute.type in ("GRAPH", "GRAPHS") for attribute in operator.attributes.values()
        )
        steps = tuple(step for step in self._path(operator, self._targets[domain]) if step.function)
        final = self._registry.at(op_type, self._targets[domain], domain) or operator
        lineage_of = self._registry.operator(operator.name, operator.domain)
        versions = lineage_of.versions if lineage_of else ()
        older = tuple(each for each in versions if each.since_version < operator.since_version)
        return Route(operator, steps, final, has_subgraphs, _concerns(steps), older)

    def _path(self, operator: OperatorVersion, target_opset: int) -> list[Edge]:
        lineage_of = self._registry.operator(operator.name, operator.domain)
        assert lineage_of is not None
        there = lineage_of.at(target_opset)
        if there is operator:
            return []
        goal = there.since_version if there else self._end(lineage_of, operator, target_opset)
        path = compiled_path(lineage_of, operator.since_version, goal)
        if path is None:
            path = shortest_path(lineage_of, operator.since_version, goal)
        return [edge(lineage_of, *pair, self._table) for pair in pairwise(path)]

    def _end(self, lineage_of: Operator, operator: OperatorVersion, target_opset: int) -> int:
        """The opset at which the operator is expressed by others, since the target's set lacks it.

        Raises:
            ResolveError: it is not in the set yet, and no way to express it is known.
        """
        if operator.removal and operator.removal.removed_in <= target_opset:
            return operator.removal.removed_in
        first = lineage_of.versions[0]
        if target_opset < first.since_version and first.before is not None:
            return first.since_version - 1
        self._registry.get_schema(operator.name, target_opset, operator.domain)
        raise AssertionError("unreachable: the operator is not in force at the target")


def shortest_path(operator: Operator, start: int, goal: int) -> tuple[int, ...]:
    """The versions on the way from one to another, or to the opset where others express the operator.

    Raises:
        DefinitionError: a step of the operator is wrong.
    """
    import networkx as nx

    first, last = (OperatorId(operator.domain, operator.name, version) for version in (start, goal))
    path = nx.shortest_path(lineage(operator, adapter_table()), first, last)
    return tuple(each.since_version for each in path)


def _concerns(steps: tuple[Edge, ...]) -> frozenset[str] | None:
    found: frozenset[str] = frozenset()
    for step in steps:
        if step.concerns is None:
            return None
        found |= step.concerns
    return found
