"""Routes: the steps that convert an operator to the target opset; compiled paths and lazy adapters."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from opshift import adapters
from opshift.adapters.core.adapter_table import (
    Adapter,
    StepKey,
    adapter_table,
    built_in_adapters,
    registered_adapters,
)
from opshift.inference.facts import UNAFFECTED, OperatorStatus
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.shared_data import share_results
from opshift.opsets import OPSETS
from opshift.registry.errors import DefinitionError
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.precompiled import DEFINITIONS, CompiledFile
from opshift.registry.registry import Registry
from opshift.registry.steps import Refuse
from opshift.rewriting.version_graph import build_version_graph, check_expressions, shortest_paths
from opshift.rewriting.version_steps import VersionStep, find_step

if TYPE_CHECKING:
    from opshift.adapters.core.equivalents import Unwanted


class Route(NamedTuple):
    """Steps that convert the nodes of an operator version to the target."""

    operator: OperatorVersion
    steps: tuple[VersionStep, ...]
    """Steps with a function, in order; empty if nodes do not change."""
    final: OperatorVersion
    """Version in effect at the target; `operator` if the target opset lacks the operator."""
    status: OperatorStatus
    """Status of the operator: its nodes may need conversion, or contain subgraphs."""
    affected_element_types: frozenset[str] | None
    """Element types with which nodes may change; `None` if changes do not depend on types alone."""
    older_versions: tuple[OperatorVersion, ...]
    """Versions before `operator`."""


class Router:
    """Routes from any operator and opset to one set of target opsets."""

    def __init__(
        self, registry: Registry, table: Mapping[StepKey, Adapter], targets: Mapping[str, int]
    ) -> None:
        self.registry = registry
        self._table = table
        self._targets = dict(targets)
        self.default_opset = self._targets[DEFAULT_DOMAIN]
        self.fact_querying_opsets: set[int] = set()
        """Source opsets of the default domain for which steps queried facts, and probably will again."""
        self._routes: dict[tuple[str, str, int], Route] = {}
        self.without: frozenset[Unwanted] = frozenset()
        """Operators, domains and types that a result may not contain."""

    def final_opset(self, domain: str) -> int:
        """Return the target opset of a domain."""
        return self._targets[domain or DEFAULT_DOMAIN]

    def route(self, domain: str, op_type: str, opset: int) -> Route:
        """Return the route of an operator from an opset.

        Raises:
            ResolveError: the opset does not contain the operator.
            DefinitionError: a step of the operator is invalid.
        """
        key = (domain, op_type, opset)
        found = self._routes.get(key)
        if found is None:
            found = self._routes.setdefault(key, self._find_route(canonical_domain(domain), op_type, opset))
        return found

    def _find_route(self, domain: str, op_type: str, opset: int) -> Route:
        operator, target = self._source(op_type, opset, domain)
        definition = self.registry.operator(operator.name, operator.domain)
        assert definition is not None
        path = self._steps_of_path(definition, operator, target)
        steps = tuple(step for step in path if step.function)
        final = definition.at(target) or operator
        older = tuple(each for each in definition.versions if each.since_version < operator.since_version)
        affected_types = _affected_types(steps)
        status = OperatorStatus(affected_types is None, operator.holds_graphs)
        # Return the shared object, because callers compare with `is`.
        shared = UNAFFECTED if status == UNAFFECTED else status
        return Route(operator, steps, final, shared, affected_types, older)

    def _source(self, op_type: str, opset: int, domain: str) -> tuple[OperatorVersion, int]:
        """Return the operator version at an opset, and the target opset of the domain that defines it."""
        target = self._targets[domain]
        self.registry.require_opset(opset, domain)
        operator = self.registry.known_or_removed_at(op_type, opset, domain)
        # If the opset lacks the operator, `get_schema` raises the error.
        operator = operator or self.registry.get_schema(op_type, opset, domain)
        if operator.domain == domain:
            return operator, target
        # A nonstandard operator of a different domain. If the target opset of the domain has an operator
        # with this name, the conversion follows `before:` of the definition.
        first = operator.since_version
        return operator, first - 1 if self.registry.has(op_type, target, domain) else first

    def _steps_of_path(
        self, definition: Operator, operator: OperatorVersion, target_opset: int
    ) -> list[VersionStep]:
        at_target = definition.at(target_opset)
        goal = (
            at_target.since_version
            if at_target
            else self._replacement_opset(definition, operator, target_opset)
        )
        start = operator.since_version
        if goal == start:
            replaced = _replaced_version(definition, operator)
            if replaced is None:
                return []
            start = replaced.since_version
        path = precompiled_path(definition, start, goal)
        if path is None:
            path = _uncompiled_path(definition, start, goal)
        return [find_step(definition, *pair, self._table) for pair in pairwise(path)]

    def _replacement_opset(self, definition: Operator, operator: OperatorVersion, target_opset: int) -> int:
        """Return the opset at which other operators replace an operator that the target opset lacks."""
        # Only the last version before a removal declares the removal; older versions convert to it first.
        later = (each for each in definition.versions if each.since_version >= operator.since_version)
        removal = next((each.removal for each in later if each.removal), None)
        if removal and removal.removed_in <= target_opset:
            return removal.removed_in
        first = definition.versions[0]
        if target_opset < first.since_version and first.before is not None:
            return first.since_version - 1
        # The target opset lacks the operator, so this raises the error.
        return self.registry.get_schema(operator.name, target_opset, operator.domain).since_version


def replaced_from(operator: Operator) -> int | None:
    """Return the opset from which other operators replace an operator; `None` if none replaces it."""
    last = operator.versions[-1]
    if last.removal:
        return None if isinstance(last.removal.up, Refuse) else last.removal.removed_in
    return last.since_version if _replaced_version(operator, last) else None


def _replaced_version(definition: Operator, operator: OperatorVersion) -> OperatorVersion | None:
    """Return the version before a deprecated version if the step between them replaces nodes, or `None`.

    Models may not contain nodes of the deprecated version, so its nodes count as nodes of the version before.
    """
    up = operator.step.up if operator.deprecation and operator.step else None
    if up is None or up == "compatible" or isinstance(up, Refuse):
        return None
    return max(
        (each for each in definition.versions if each.since_version < operator.since_version),
        key=lambda each: each.since_version,
        default=None,
    )


def _uncompiled_path(operator: Operator, start: int, goal: int) -> tuple[int, ...]:
    """Return the same path as `precompiled_path`, by building the version graph of the operator."""
    paths = shortest_paths(build_version_graph([operator], adapter_table()))
    versions = (tuple(each.since_version for each in path) for path in paths)
    return next(each for each in versions if (each[0], each[-1]) == (start, goal))


def _affected_types(steps: tuple[VersionStep, ...]) -> frozenset[str] | None:
    found: frozenset[str] = frozenset()
    for step in steps:
        if step.affected_element_types is None:
            return None
        found |= step.affected_element_types
    return found


class CompiledRoutes(TypedDict):
    """Routes by operator, such as `ai.onnx.Relu`, and the module of each adapter.

    The routes of an operator are a JSON string, decoded when the operator is used: a list of all versions,
    then one list of versions for each route.
    """

    operators: dict[str, str]
    adapters: dict[str, str]


# The definitions in YAML are not dependencies: `precompiled_path` compares the versions of an operator, and
# `_replacement_opset` and `find_step` read all other declarations from the current definition.
ROUTES: Final = CompiledFile(
    Path(__file__).with_name("compiled.json"),
    [Path(adapters.__file__).parent, Path(__file__).parent],
    DEFINITIONS,
)


_COMPILING: Final = Lock()
"""Held while routes are compiled, so that threads do not repeat this: in a checkout, it takes seconds."""


@share_results
def precompiled_routes() -> CompiledRoutes:
    """Return the compiled routes of the project's operators; empty if a definition is invalid."""
    try:
        # Nothing inside this block calls `precompiled_routes`, which would wait for this lock forever.
        with _COMPILING:
            routes: CompiledRoutes = json.loads(routes_text())
    except DefinitionError:
        # In a checkout, an error in an operator that is being edited must not prevent conversions of other
        # operators.
        routes = CompiledRoutes(operators={}, adapters={})
    return routes


def routes_text() -> str:
    """Return the compiled routes of the project's operators in JSON."""
    return ROUTES.text("routes", (), lambda: json.dumps(compile_routes(Registry((OPSETS,)))))


def compile_routes(registry: Registry) -> CompiledRoutes:
    """Return the routes of all operators and the module of each adapter, see `build_version_graph`."""
    table = built_in_adapters()
    graph = build_version_graph(registry.operators(), table)
    check_expressions(graph)
    operators = {f"{each.domain}.{each.name}": [_versions_of(each)] for each in registry.operators()}
    for path in shortest_paths(graph):
        operators[f"{path[0].domain}.{path[0].op_type}"].append([each.since_version for each in path])
    adapters = {str(pair): function.__module__ for pair, function in sorted(table.items())}
    routes = {name: json.dumps(versions) for name, versions in operators.items()}
    return CompiledRoutes(operators=routes, adapters=adapters)


def _versions_of(operator: Operator) -> list[int]:
    return [each.since_version for each in operator.versions]


def precompiled_path(operator: Operator, start: int, goal: int) -> tuple[int, ...] | None:
    """Return the `since_version`s on the path from `start` to `goal`, both included.

    Return `None` if the path is missing, or was compiled for different versions of the operator.
    """
    text = precompiled_routes()["operators"].get(f"{operator.domain}.{operator.name}", "[null]")
    versions, *paths = json.loads(text)
    if versions != _versions_of(operator):
        return None
    return next((tuple(each) for each in paths if (each[0], each[-1]) == (start, goal)), None)


class LazyAdapterTable(Mapping[StepKey, Adapter]):
    """Table of adapters that imports the module of an adapter on first use."""

    def __getitem__(self, pair: StepKey) -> Adapter:
        module = precompiled_routes()["adapters"].get(str(pair))
        if module is not None:
            # Import even if the adapter is registered: another thread may still be executing its module.
            importlib.import_module(module)
        return registered_adapters()[pair] if pair in registered_adapters() else adapter_table()[pair]

    def __contains__(self, pair: object) -> bool:
        return pair in registered_adapters() or str(pair) in precompiled_routes()["adapters"]

    def __iter__(self) -> Iterator[StepKey]:
        return iter(adapter_table())

    def __len__(self) -> int:
        return len(adapter_table())
