"""Analysis of a model's operators: whether their nodes need conversion, or may contain subgraphs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from opshift.converter.options import Options
from opshift.inference.facts import OperatorStatus
from opshift.inference.model_element_types import ElementTypes
from opshift.inference.scope import Scope
from opshift.inference.survey import ContainerSurvey
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, imported_default_opset
from opshift.registry.errors import ResolveError
from opshift.rewriting.router_for import router_for
from opshift.rewriting.routes import Router

if TYPE_CHECKING:
    from opshift.inference.call_facts import CallSite
    from opshift.inference.function_scope import FunctionTable

Imports = frozenset[tuple[str, int]]
"""Opset imports as pairs of domain and opset, in a hashable form for cache keys."""


class NodeAnalysis:
    """Statuses of a model's operators, collected in one pass over all nodes (the survey)."""

    def __init__(
        self,
        model: ModelProto,
        options: Options,
        functions: FunctionTable | None,
    ) -> None:
        self.operators: set[tuple[str, str]] = set()
        self.unresolved: dict[tuple[str, str, int], ResolveError] = {}
        """Errors for unknown operators, by domain, op_type and opset; cached, because looking up is slow."""
        self.calls: list[tuple[int, CallSite]] = []
        self._model = model
        self._registry = options.registry
        self._element_types: ElementTypes | None = None
        self._targets = options.target.opsets
        self._functions = functions
        self._without = options.without
        self._routers: dict[Imports, Router] = {}
        self._known_imports: dict[Imports, Imports] = {}
        self._last_imports: tuple[Mapping[str, int], Imports] = {}, frozenset()
        self._statuses: dict[Imports, dict[str, OperatorStatus]] = {}
        self._type_dependent: dict[Imports, dict[tuple[str, str], frozenset[str]]] = {}
        """Operators with steps that affect only some element types, and these types, by opset imports."""

    def router(self, opsets: Mapping[str, int]) -> Router:
        """Return the router, which finds conversion steps, from these opset imports to the target opsets."""
        key = self._imports(opsets)
        if key not in self._routers:
            final_opsets = {**opsets, **self._targets}
            # Steps may emit nodes of the default domain, even if the opset imports lack it.
            if DEFAULT_DOMAIN not in final_opsets:
                companion = self._registry.releases.companion_opset(final_opsets)
                final_opsets[DEFAULT_DOMAIN] = self._default_opset or companion
            self._routers[key] = router_for(self._registry, frozenset(final_opsets.items()), self._without)
        return self._routers[key]

    @cached_property
    def _default_opset(self) -> int | None:
        return imported_default_opset(self._model)

    def _imports(self, opsets: Mapping[str, int]) -> Imports:
        """Return opsets as a hashable key; equal mappings get the same object."""
        # Cached: each new operator, graph and function needs this key, and most of them share one mapping.
        if self._last_imports[0] is not opsets:
            new = frozenset(opsets.items())
            # Equal sets become one object, because comparing distinct objects with many domains takes long.
            self._last_imports = opsets, self._known_imports.setdefault(new, new)
        return self._last_imports[1]

    def statuses_at(self, opsets: Mapping[str, int]) -> dict[str, OperatorStatus]:
        """Return the operator statuses that all scopes at these opsets share, by op_type (default domain)."""
        return self._statuses.setdefault(self._imports(opsets), {})

    def classify(self, proto: NodeProto, scope: Scope) -> OperatorStatus:
        """Return the status of a node's operator; cache it if the domain is `""` and no function hides it."""
        domain, op_type = proto.domain, proto.op_type
        self.operators.add((domain, op_type))
        if self._functions is not None and self._functions.has_name(op_type, domain):
            call = self._functions.find_call(proto, scope)
            if call:
                self.calls.append(call)
                return OperatorStatus(has_step=False, has_graphs=True)
            return self._status(domain, op_type, scope)
        found = self._status(domain, op_type, scope)
        if not domain:
            scope.operator_statuses[op_type] = found
        return found

    def finish(self, surveyed: Collection[ContainerSurvey]) -> None:
        """Add nodes with steps that affect only some element types to the nodes that may need conversion.

        A node is added if one of these types occurs in the model. The types that occur are known only after
        the survey of all graphs and functions.
        """
        if not self._type_dependent:
            return
        types = self._element_types_in(surveyed)
        affected = {
            imports: {key for key, affected_types in found.items() if types.among(affected_types, 1)}
            for imports, found in self._type_dependent.items()
        }
        for each in surveyed:
            if candidates := affected.get(self._imports(each.scope.opsets)):
                each.add_candidates(candidates)

    def _element_types_in(self, surveyed: Collection[ContainerSurvey]) -> ElementTypes:
        if self._element_types is None:
            scopes = (inner.scope for each in surveyed for inner in each.walk())
            self._element_types = ElementTypes(scopes, self.operators)
        return self._element_types

    def _status(self, model_domain: str, op_type: str, scope: Scope) -> OperatorStatus:
        """Return the status of an operator; `model_domain` is the field `domain` of its nodes."""
        domain = model_domain or DEFAULT_DOMAIN
        opset = scope.opsets.get(domain)
        if opset is None:
            return OperatorStatus(has_step=True, has_graphs=True)
        if (
            domain != DEFAULT_DOMAIN
            and self._registry.is_undefined(op_type, opset, domain)
            and self._without.isdisjoint((domain, f"{domain}.{op_type}"))
        ):
            if self._functions is not None:
                self._functions.undefined_operators.setdefault(domain, set()).add(op_type)
            return OperatorStatus(has_step=False, has_graphs=True)
        try:
            route = self.router(scope.opsets).route(model_domain, op_type, opset)
        except ResolveError as error:
            self.unresolved[model_domain, op_type, opset] = error.with_traceback(None)
            return OperatorStatus(has_step=True, has_graphs=True)
        if route.affected_element_types:
            type_dependent = self._type_dependent.setdefault(self._imports(scope.opsets), {})
            type_dependent[model_domain, op_type] = route.affected_element_types
        return route.status
