"""Decide: what every node becomes, or every reason why it cannot, before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.converter.concessions import Concessions
from opshift.converter.errors import ConversionRefused, InvalidModel, Refusal
from opshift.converter.ir_version import ir_version_for
from opshift.converter.names import Names
from opshift.converter.opsets import opset_imports
from opshift.converter.rewrite import Rewritten, rewrite
from opshift.converter.route import Router, router_for
from opshift.converter.scope import QUIET, Scope, Standing
from opshift.converter.survey import Surveyed, label, survey
from opshift.converter.target import Target
from opshift.registry.catalogue import Registry
from opshift.registry.errors import ResolveError
from opshift.registry.names import DEFAULT_DOMAIN, OperatorId, canonical_domain


class NodeChange(NamedTuple):
    """A node that is replaced: its position, what it was, and what takes its place."""

    position: int
    path: str
    name: str
    original: Node
    result: Rewritten

    @property
    def place(self) -> str:
        """The graph or function, and the node in it."""
        node = self.original
        return f"{self.path}, node {label(self.name, node.op_type, node.outputs)}"

    @property
    def operator(self) -> OperatorId:
        """What the node was."""
        return self.result.operator.id


@dataclass
class ContainerPlan:
    """What happens in one graph or function."""

    path: str
    node_count: int = 0
    changes: list[NodeChange] = field(default_factory=list)
    constants: Mapping[str, Tensor] = field(default_factory=dict)
    new_imports: dict[str, int] = field(default_factory=dict)
    """Domains that new nodes are of and that had no opset import."""
    subgraphs: list[tuple[int, str, int, ContainerPlan]] = field(default_factory=list)
    """Position of the node, name of its attribute, position in it, and the plan of the graph there."""

    def all(self) -> Iterator[ContainerPlan]:
        """This plan and those of the graphs within."""
        waiting = [self]
        while waiting:
            current = waiting.pop()
            yield current
            waiting += reversed([each[3] for each in current.subgraphs])

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes here or within."""
        return not self.changes and all(each[3].is_empty for each in self.subgraphs)


@dataclass(frozen=True)
class OpsetChange:
    """One domain's opset before and after."""

    domain: str
    source: int
    target: int


@dataclass(frozen=True)
class Plan:
    """All that a conversion does to a model, and all that stands in its way.

    Attributes:
        opsets: the domains whose opset changes.
        ir_version: before and after.
        graph, training, functions: what happens in each.
        refusals: what cannot be converted; a plan with any is never applied.
        concessions: what is not exact and was allowed, with the reason of each.
    """

    opsets: tuple[OpsetChange, ...]
    ir_version: tuple[int, int]
    graph: ContainerPlan
    training: tuple[ContainerPlan, ...]
    """Of each training_info its initialization and its algorithm."""
    functions: tuple[ContainerPlan, ...]
    targets: Mapping[str, int]
    refusals: tuple[Refusal, ...]
    concessions: tuple[tuple[str, str], ...] = ()

    def containers(self) -> Iterator[ContainerPlan]:
        """Every graph and function of the model."""
        for top in (self.graph, *self.training, *self.functions):
            yield from top.all()

    def require_possible(self) -> None:
        """Raise what stands in the way.

        Raises:
            ConversionRefused: at least one node cannot be converted.
        """
        if self.refusals:
            raise ConversionRefused(self.refusals)


class Planner:
    """Plans one model."""

    def __init__(
        self, model: Any, target: Target, registry: Registry, allow: str | Iterable[str] = ()
    ) -> None:
        self._model = model
        self._registry = registry
        self._target = target
        self._names = Names()
        self._concessions = Concessions(allow)
        self._functions = frozenset((canonical_domain(each.domain), each.name) for each in model.functions)
        self._routers: dict[frozenset[tuple[str, int]], Router] = {}
        self._standings: dict[frozenset[tuple[str, int]], dict[str, Standing]] = {}
        self._unresolved: dict[tuple[str, str, int], ResolveError] = {}
        """Why nodes name no operator: to look for near names takes long."""
        self._refusals: list[Refusal] = []

    def plan(self) -> Plan:
        """Look at every node once, then at those with a step to take.

        Raises:
            InvalidModel: the model has no meaning as it is.
        """
        model = self._model
        if not model.HasField("graph"):
            raise InvalidModel(
                "this is not a model: it has no graph", remedy="check that the file is the right one"
            )
        imports = opset_imports(model.opset_import, model.ir_version)
        graph = self._survey(model.graph, imports, "graph")
        training = [
            self._survey(getattr(info, part), imports, f"training_info[{index}].{part}", graph.scope)
            for index, info in enumerate(model.training_info)
            for part in ("initialization", "algorithm")
        ]
        functions = [self._survey_function(each) for each in model.functions]
        return self._plan(imports, graph, training, functions)

    def _plan(
        self,
        imports: Mapping[str, int],
        graph: Surveyed,
        training: list[Surveyed],
        functions: list[Surveyed],
    ) -> Plan:
        opsets = tuple(
            OpsetChange(domain, source, self._target.opsets[domain])
            for domain, source in imports.items()
            if self._target.opsets.get(domain, source) != source
        )
        raised = {each.domain: each.target for each in opsets if each.target > each.source}
        current = self._model.ir_version
        return Plan(
            opsets,
            (current, ir_version_for(current, raised, self._registry.releases)),
            self._container(graph),
            tuple(map(self._container, training)),
            tuple(map(self._container, functions)),
            self._target.opsets,
            tuple(self._refusals),
            tuple(self._concessions.used),
        )

    def _survey(
        self, container: Any, opsets: Mapping[str, int], path: str, parent: Scope | None = None
    ) -> Surveyed:
        standings = self._standings.setdefault(frozenset(opsets.items()), {})
        scope = Scope(container, opsets, self._registry, self._names, self._concessions, standings, parent)
        return survey(scope, path, self._look)

    def _survey_function(self, function: Any) -> Surveyed:
        opsets = opset_imports(function.opset_import or self._model.opset_import, self._model.ir_version)
        return self._survey(function, opsets, f"function {canonical_domain(function.domain)}.{function.name}")

    def _router(self, opsets: Mapping[str, int]) -> Router:
        """The routes from some opset imports to where the target takes them."""
        key = frozenset(opsets.items())
        if key not in self._routers:
            finals = {**opsets, **self._target.opsets}
            finals.setdefault(DEFAULT_DOMAIN, self._registry.releases.companion_opset(finals))
            self._routers[key] = router_for(self._registry, frozenset(finals.items()))
        return self._routers[key]

    def _look(self, proto: Any, scope: Scope) -> Standing:
        """Where a node stands; of the default domain it is remembered for all nodes of the operator."""
        found = self._standing(proto, scope)
        if not proto.domain:
            scope.standings[proto.op_type] = found
        return found

    def _standing(self, proto: Any, scope: Scope) -> Standing:
        domain = canonical_domain(proto.domain)
        if (domain, proto.op_type) in self._functions:
            return Standing(has_step=False, has_graphs=True)
        opset = scope.opsets.get(domain)
        if opset is None:
            return Standing(has_step=True, has_graphs=True)
        if domain not in self._registry.domains():
            return Standing(has_step=False, has_graphs=True)
        try:
            route = self._router(scope.opsets).route(proto.domain, proto.op_type, opset)
        except ResolveError as error:
            self._unresolved[proto.domain, proto.op_type, opset] = error.with_traceback(None)
            return Standing(has_step=True, has_graphs=True)
        standing = Standing(bool(route.steps), route.has_subgraphs)
        return QUIET if standing == QUIET else standing

    def _container(self, surveyed: Surveyed) -> ContainerPlan:
        scope = surveyed.scope
        router = self._router(scope.opsets)
        found = ContainerPlan(surveyed.path, len(scope.container.node))
        for index, proto in surveyed.todo:
            change = self._change(index, proto, surveyed, router)
            if change is not None:
                found.changes.append(change)
        found.constants = scope.new_constants
        domains = {written.node.domain for change in found.changes for written in change.result.nodes}
        found.new_imports = {
            domain: router.final_opset(domain)
            for domain in map(canonical_domain, domains)
            if domain not in scope.opsets
        }
        found.subgraphs = [
            (index, attribute, position, self._container(inner))
            for index, attribute, position, inner in surveyed.subgraphs
        ]
        return found

    def _change(self, index: int, proto: Any, surveyed: Surveyed, router: Router) -> NodeChange | None:
        scope = surveyed.scope
        try:
            original = Node.of(proto)
            opset = scope.opsets.get(original.domain or DEFAULT_DOMAIN)
            if opset is None:
                self._registry.resolve(proto, scope.opsets)
            assert opset is not None
            unresolved = self._unresolved.get((original.domain, original.op_type, opset))
            if unresolved:
                raise unresolved.with_traceback(None)
            result = rewrite(original, opset, scope, router)
        except (CannotConvert, ResolveError) as error:
            place = f"{surveyed.path}, node {label(proto.name, proto.op_type, proto.output)}"
            named = self._operator_name(proto, scope)
            self._refusals.append(Refusal(place, named, error.reason, error.remedy))
            return None
        if _is_same(original, result):
            return None
        return NodeChange(index, surveyed.path, proto.name, original, result)

    def _operator_name(self, proto: Any, scope: Scope) -> str:
        """As much as can be told of what a node is."""
        domain = canonical_domain(proto.domain)
        opset = scope.opsets.get(domain, 0)
        unresolved = (proto.domain, proto.op_type, opset) in self._unresolved
        if unresolved or not self._registry.has(proto.op_type, opset, domain):
            return f"{domain}.{proto.op_type}"
        return str(self._registry.get_schema(proto.op_type, opset, domain).id)


def _is_same(original: Node, result: Rewritten) -> bool:
    if len(result.nodes) != 1:
        return False
    node = result.nodes[0].node
    return node is original or (
        node.op_type == original.op_type
        and node.domain == original.domain
        and node.inputs == original.inputs
        and node.outputs == original.outputs
        and node.attributes == original.attributes
    )
