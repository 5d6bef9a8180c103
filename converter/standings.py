"""Where the nodes of a model stand: which may have a step to take, and which may hold graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from opshift.converter.element_types import element_types_in
from opshift.converter.route import Router, router_for
from opshift.converter.scope import QUIET, Scope, Standing
from opshift.converter.survey import Surveyed
from opshift.registry.catalogue import Registry
from opshift.registry.errors import ResolveError
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

if TYPE_CHECKING:
    from opshift.converter.callers import Call
    from opshift.converter.functions import Functions

Imports = frozenset[tuple[str, int]]
"""Opset imports, to look up what is known under them."""


class Standings:
    """What is found out of a model's operators while its nodes are surveyed.

    Attributes:
        operators: the domain and op_type of every node.
        unresolved: why nodes name no operator, by domain, op_type and opset; to find out takes long.
        calls: the nodes that call functions, in the graph or function that is surveyed.
    """

    def __init__(
        self, model: Any, registry: Registry, targets: Mapping[str, int], functions: Functions | None
    ) -> None:
        self.operators: set[tuple[str, str]] = set()
        self.unresolved: dict[tuple[str, str, int], ResolveError] = {}
        self.calls: list[tuple[int, Call]] = []
        self._model = model
        self._registry = registry
        self._targets = targets
        self._functions = functions
        self._routers: dict[Imports, Router] = {}
        self._remembered: dict[Imports, dict[str, Standing]] = {}
        self._doubtful: dict[Imports, dict[tuple[str, str], frozenset[str]]] = {}
        """By opset imports, the operators whose steps concern some element types alone, and these."""

    def router(self, opsets: Mapping[str, int]) -> Router:
        """The routes from some opset imports to where the target takes them."""
        key = frozenset(opsets.items())
        if key not in self._routers:
            finals = {**opsets, **self._targets}
            if DEFAULT_DOMAIN not in finals:
                finals[DEFAULT_DOMAIN] = self._registry.releases.companion_opset(finals)
            self._routers[key] = router_for(self._registry, frozenset(finals.items()))
        return self._routers[key]

    def at(self, opsets: Mapping[str, int]) -> dict[str, Standing]:
        """What is known of the default domain's operators at some opsets, for all scopes to share."""
        return self._remembered.setdefault(frozenset(opsets.items()), {})

    def look(self, proto: Any, scope: Scope) -> Standing:
        """Where a node stands; of the default domain it is remembered for all nodes of the operator."""
        self.operators.add((proto.domain, proto.op_type))
        if self._functions is not None and self._functions.has_name(proto.op_type, proto.domain):
            call = self._functions.call(proto, scope)
            self.calls += [call] if call else []
            return Standing(has_step=False, has_graphs=True) if call else self._standing(proto, scope)
        found = self._standing(proto, scope)
        if not proto.domain:
            scope.standings[proto.op_type] = found
        return found

    def settle(self, surveyed: Iterable[Surveyed]) -> None:
        """Once all is surveyed: take up the nodes whose steps concern element types that the model has."""
        if not self._doubtful:
            return
        types = element_types_in(self._model, self._registry, self.operators)
        for each in surveyed:
            doubtful = self._doubtful.get(frozenset(each.scope.opsets.items()), {})
            concerned = {key for key, concerns in doubtful.items() if not concerns.isdisjoint(types)}
            if concerned:
                each.take_up(concerned)

    def _standing(self, proto: Any, scope: Scope) -> Standing:
        domain = canonical_domain(proto.domain)
        opset = scope.opsets.get(domain)
        if opset is None:
            return Standing(has_step=True, has_graphs=True)
        if domain not in self._registry.domains():
            if self._functions is not None:
                self._functions.others.setdefault(domain, set()).add(proto.op_type)
            return Standing(has_step=False, has_graphs=True)
        try:
            route = self.router(scope.opsets).route(proto.domain, proto.op_type, opset)
        except ResolveError as error:
            self.unresolved[proto.domain, proto.op_type, opset] = error.with_traceback(None)
            return Standing(has_step=True, has_graphs=True)
        if route.concerns:
            doubtful = self._doubtful.setdefault(frozenset(scope.opsets.items()), {})
            doubtful[proto.domain, proto.op_type] = route.concerns
        standing = Standing(route.concerns is None, route.has_subgraphs)
        return QUIET if standing == QUIET else standing
