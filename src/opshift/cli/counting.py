"""Number of nodes per operator of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from opshift.registry.catalogue import LocalFunction, Registry
from opshift.registry.errors import ResolveError
from opshift.registry.names import canonical_domain

HOLDS_GRAPHS = frozenset((0, 5, 10))
"""Values of `AttributeProto.type` for attributes that may contain graphs: UNDEFINED, GRAPH and GRAPHS."""


class Call(NamedTuple):
    """Operator of a node as the node declares it."""

    domain: str
    op_type: str
    overload: str


@dataclass(frozen=True)
class Use:
    """Operator used by a model: its number of nodes, its kind, and a remark (`reason`) with a remedy."""

    operator: str
    count: int
    kind: Literal["operator", "function", "foreign", "unresolved"]
    reason: str = ""
    remedy: str = ""


class Census:
    """Counter of nodes per operator, which resolves each operator once."""

    def __init__(self, registry: Registry, functions: frozenset[tuple[str, str, str]]) -> None:
        self._registry = registry
        self._functions = functions
        self._counts: Counter[tuple[Call, tuple[tuple[str, int], ...]]] = Counter()

    def count(self, container: Any, opsets: dict[str, int]) -> Iterator[int]:
        """Count the nodes of a graph or function; yield its number of nodes, then that of each subgraph."""
        imports = tuple(opsets.items())  # functions have their own opset imports
        pending = [container]
        while pending:
            nodes = pending.pop().node
            for node in nodes:
                self._counts[Call(node.domain, node.op_type, node.overload), imports] += 1
                for attribute in node.attribute:
                    if attribute.type in HOLDS_GRAPHS:
                        pending += [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
            yield len(nodes)

    def uses(self) -> tuple[Use, ...]:
        """Return the counted operators, most frequent first and unresolved ones last."""
        counts: Counter[Use] = Counter()
        for (call, imports), count in self._counts.items():
            counts[self._resolve(call, dict(imports))] += count
        uses = [replace(use, count=count) for use, count in counts.items()]
        return tuple(sorted(uses, key=lambda use: (use.kind == "unresolved", -use.count, use.operator)))

    def _resolve(self, call: Call, opsets: dict[str, int]) -> Use:
        domain = canonical_domain(call.domain)
        name = f"{domain}.{call.op_type}"
        if (*call,) not in self._functions and domain in opsets and domain not in self._registry.domains():
            return Use(name, 0, "foreign", "the registry has no definitions for its domain")
        try:
            resolved = self._registry.resolve(call, opsets, self._functions)
        except ResolveError as error:
            return Use(name, 0, "unresolved", error.reason, error.remedy)
        if isinstance(resolved, LocalFunction):
            return Use(name, 0, "function", "local function of the model")
        return Use(str(resolved.id), 0, "operator", "deprecated" if resolved.deprecated else "")
