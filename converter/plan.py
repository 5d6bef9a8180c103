"""Decide: what every node becomes, or every reason why it cannot, before anything is touched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.table import adapter_table
from opshift.converter.errors import ConversionRefused, Refusal
from opshift.converter.ir_version import ir_version_for
from opshift.converter.names import Names
from opshift.converter.rewrite import Rewritten, rewrite
from opshift.converter.route import Router
from opshift.converter.scope import Scope
from opshift.converter.structure import check_structure, opset_imports
from opshift.converter.target import Target
from opshift.registry.catalogue import Registry
from opshift.registry.errors import ResolveError
from opshift.registry.names import DEFAULT_DOMAIN, OperatorId, canonical_domain


@dataclass(frozen=True)
class NodeChange:
    """A node that is replaced: its position, what it was, and what takes its place."""

    index: int
    place: str
    operator: OperatorId
    original: Node
    result: Rewritten


@dataclass
class ContainerPlan:
    """What happens in one graph or function."""

    path: str
    node_count: int = 0
    changes: list[NodeChange] = field(default_factory=list)
    constants: Mapping[Tensor, str] = field(default_factory=dict)
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
    """

    opsets: tuple[OpsetChange, ...]
    ir_version: tuple[int, int]
    graph: ContainerPlan
    training: tuple[tuple[ContainerPlan, ContainerPlan], ...]
    functions: tuple[ContainerPlan, ...]
    targets: Mapping[str, int]
    refusals: tuple[Refusal, ...]

    def containers(self) -> Iterator[ContainerPlan]:
        """Every graph and function of the model."""
        for top in (self.graph, *(each for pair in self.training for each in pair), *self.functions):
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

    def __init__(self, model: Any, target: Target, registry: Registry) -> None:
        self._model = model
        self._registry = registry
        self._target = target
        self._names = Names(model)
        self._functions = frozenset((each.domain, each.name) for each in model.functions)
        self._routers: dict[frozenset[tuple[str, int]], Router] = {}
        self._refusals: list[Refusal] = []
        self._quiet: dict[int | None, set[str]] = {}

    def plan(self) -> Plan:
        """Look at every node once.

        Raises:
            InvalidModel: the model has no meaning as it is.
        """
        model = self._model
        check_structure(model)
        imports = opset_imports(model.opset_import, model.ir_version)
        graph, scope = self._top(model.graph, imports, "graph", None)
        training = tuple(
            (
                self._top(info.initialization, imports, f"training_info[{index}].initialization", scope)[0],
                self._top(info.algorithm, imports, f"training_info[{index}].algorithm", scope)[0],
            )
            for index, info in enumerate(model.training_info)
        )
        functions = tuple(self._function(each) for each in model.functions)
        opsets = tuple(
            OpsetChange(domain, source, self._target.opsets[domain])
            for domain, source in imports.items()
            if self._target.opsets.get(domain, source) != source
        )
        raised = {each.domain: each.target for each in opsets if each.target > each.source}
        ir_version = ir_version_for(model.ir_version, raised, self._registry.releases)
        return Plan(
            opsets,
            (model.ir_version, ir_version),
            graph,
            training,
            functions,
            self._target.opsets,
            tuple(self._refusals),
        )

    def _top(
        self, graph: Any, opsets: Mapping[str, int], path: str, parent: Scope | None
    ) -> tuple[ContainerPlan, Scope]:
        scope = Scope(graph, opsets, self._registry, self._names, parent)
        return self._container(scope, path), scope

    def _function(self, function: Any) -> ContainerPlan:
        path = f"function {canonical_domain(function.domain)}.{function.name}"
        opsets = opset_imports(function.opset_import or self._model.opset_import, self._model.ir_version)
        return self._container(Scope(function, opsets, self._registry, self._names), path)

    def _router(self, opsets: Mapping[str, int]) -> Router:
        """The routes from some opset imports to where the target takes them."""
        key = frozenset(opsets.items())
        if key not in self._routers:
            finals = {**opsets, **self._target.opsets}
            finals.setdefault(DEFAULT_DOMAIN, self._registry.releases.companion_opset(finals))
            self._routers[key] = Router(self._registry, adapter_table(), finals)
        return self._routers[key]

    def _container(self, scope: Scope, path: str) -> ContainerPlan:
        found = ContainerPlan(path, len(scope.container.node))
        quiet = self._quiet.setdefault(scope.opsets.get("ai.onnx"), set())
        for index, proto in enumerate(scope.container.node):
            if not proto.domain and proto.op_type in quiet:
                continue
            self._node(index, proto, scope, found, quiet)
        found.constants = scope.new_constants
        router = self._router(scope.opsets)
        for change in found.changes:
            for written in change.result.nodes:
                domain = canonical_domain(written.node.domain)
                if domain not in scope.opsets:
                    found.new_imports[domain] = router.final_opset(domain)
        return found

    def _node(self, index: int, proto: Any, scope: Scope, found: ContainerPlan, quiet: set[str]) -> None:
        if (proto.domain, proto.op_type) in self._functions:
            self._subgraphs(index, proto, scope, found)
            return
        place = (
            f"{found.path}, node {proto.name!r}"
            if proto.name
            else (f"{found.path}, node {index} ({proto.op_type} -> {', '.join(proto.output)})")
        )
        known = None
        try:
            opset = self._opset(proto, scope)
            if opset is None:
                self._subgraphs(index, proto, scope, found)
                return
            router = self._router(scope.opsets)
            route = router.route(proto.domain, proto.op_type, opset)
            known = route.operator.id
            if route.has_subgraphs:
                self._subgraphs(index, proto, scope, found)
            if route.step is None:
                if not proto.domain and not route.has_subgraphs:
                    quiet.add(proto.op_type)
                return
            original = Node.of(proto)
            result = rewrite(original, opset, scope, router)
        except (CannotConvert, ResolveError) as error:
            label = str(known) if known else f"{canonical_domain(proto.domain)}.{proto.op_type}"
            self._refusals.append(Refusal(place, label, error.reason, error.remedy))
            return
        if not _is_same(original, result):
            found.changes.append(NodeChange(index, place, route.operator.id, original, result))

    def _opset(self, proto: Any, scope: Scope) -> int | None:
        """The opset of a node's domain; `None` for a domain that the registry leaves alone.

        Raises:
            ResolveError: the domain is not imported.
        """
        domain = canonical_domain(proto.domain)
        opset = scope.opsets.get(domain)
        if opset is None:
            self._registry.resolve(proto, scope.opsets)
        return opset if domain in self._registry.domains() else None

    def _subgraphs(self, index: int, proto: Any, scope: Scope, found: ContainerPlan) -> None:
        node = None
        for attribute in proto.attribute:
            graphs = [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
            for position, graph in enumerate(graphs):
                node = node or Node.of(proto)
                path = f"{found.path} / {proto.name or proto.op_type}.{attribute.name}"
                inner = self._container(scope.child(node, attribute.name, position, graph), path)
                found.subgraphs.append((index, attribute.name, position, inner))


def _is_same(original: Node, result: Rewritten) -> bool:
    if len(result.nodes) != 1:
        return False
    node = result.nodes[0].node
    return (
        node.op_type == original.op_type
        and node.domain == original.domain
        and node.inputs == original.inputs
        and node.outputs == original.outputs
        and node.attributes == original.attributes
    )
