"""How many nodes of a model are of which operator; every operator is resolved once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from opshift.registry.catalogue import LocalFunction, Registry
from opshift.registry.errors import ResolveError
from opshift.registry.names import canonical_domain

HOLDS_GRAPHS = frozenset((0, 5, 10))
"""`AttributeProto.type` of an attribute that holds a graph, graphs, or does not say."""


class Call(NamedTuple):
    """What a node says that it is."""

    domain: str
    op_type: str
    overload: str


@dataclass(frozen=True)
class Use:
    """An operator, how many nodes are of it, and why it cannot be told if so."""

    operator: str
    count: int
    kind: Literal["operator", "function", "foreign", "unresolved"]
    reason: str = ""
    remedy: str = ""


class Census:
    """Counts nodes by what they say, and resolves each kind once."""

    def __init__(self, registry: Registry, functions: frozenset[tuple[str, str, str]]) -> None:
        self._registry = registry
        self._functions = functions
        self._counts: Counter[tuple[Call, tuple[tuple[str, int], ...]]] = Counter()

    def count(self, container: Any, opsets: dict[str, int]) -> Iterator[int]:
        """The number of nodes in a graph or function, then of each graph within."""
        key = tuple(opsets.items())
        waiting = [container]
        while waiting:
            nodes = waiting.pop().node
            for node in nodes:
                self._counts[Call(node.domain, node.op_type, node.overload), key] += 1
                for attribute in node.attribute:
                    if attribute.type in HOLDS_GRAPHS:
                        waiting += [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
            yield len(nodes)

    def uses(self) -> tuple[Use, ...]:
        """Every operator in use, the most frequent first, what is unresolved at the end."""
        found: Counter[Use] = Counter()
        for (call, key), count in self._counts.items():
            found[self._resolve(call, dict(key))] += count
        uses = [replace(use, count=count) for use, count in found.items()]
        return tuple(sorted(uses, key=lambda use: (use.kind == "unresolved", -use.count, use.operator)))

    def _resolve(self, call: Call, opsets: dict[str, int]) -> Use:
        domain = canonical_domain(call.domain)
        name = f"{domain}.{call.op_type}"
        if (*call,) not in self._functions and domain in opsets and domain not in self._registry.domains():
            return Use(name, 0, "foreign", "the registry has no definitions of its domain")
        try:
            found = self._registry.resolve(call, opsets, self._functions)
        except ResolveError as error:
            return Use(name, 0, "unresolved", error.reason, error.remedy)
        if isinstance(found, LocalFunction):
            return Use(name, 0, "function", "a function of the model")
        return Use(str(found.id), 0, "operator", "deprecated" if found.deprecated else "")
