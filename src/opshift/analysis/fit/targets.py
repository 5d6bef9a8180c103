"""Opsets that a model may be converted to for a runtime, the cheapest first.

The cost of a node at an opset is the length of a shortest path in a graph. The path starts at the operator
version of the node, follows conversion steps, and ends at a vertex for the opset and for the group of nodes
with the same operator and types. The last edge costs 0 if the runtime has a kernel. The costs are estimates,
because adapters choose operators when they run, so the result of a conversion is checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, product
from typing import Final, NamedTuple

import networkx as nx

from opshift.adapters.core.adapter_table import StepKey, adapter_table
from opshift.adapters.core.equivalents import Equivalent, equivalents
from opshift.analysis.fit.bridges import Bridges
from opshift.model.operator_ids import DEFAULT_DOMAIN, OperatorId
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.runtimes.files import get_runtime
from opshift.registry.runtimes.runtime import Runtime
from opshift.registry.steps import Allow, Refuse
from opshift.rewriting.routes import replaced_from
from opshift.rewriting.version_graph import build_version_graph
from opshift.rewriting.version_steps import StepKind
from opshift.runtimes.model_nodes import ModelNode, ModelNodes
from opshift.runtimes.schema_problems import NO_DIFFERENCE

STEP_COSTS: Final[Mapping[StepKind, int]] = {"compatible": 0, "guarded": 0, "declared": 1, "adapter": 2}
"""Cost of a conversion step: about the number of nodes that it adds. Refused steps are not in the graph."""

BODY_COST: Final = 1
"""Cost of a node that the runtime itself replaces by its function body."""

EQUIVALENT_COST: Final = 2
"""Cost of a node that one node of a different domain replaces."""

BRIDGE_COST: Final = 3
"""Cost of a type bridge, which casts the inputs and the outputs of a node."""

EXPANSION_COST: Final = 10
"""Cost of a node that several nodes of other operators replace."""

APPROXIMATION_COST: Final = 1_000
"""Cost of an inexact conversion, if the caller allows it: more than the cost of nodes that avoid it."""

IMPOSSIBLE_COST: Final = 1_000_000
"""Cost of a node that the runtime implements in no form."""

Types = tuple[tuple[str, str | None], ...]


class TargetOpsets(NamedTuple):
    """Opsets by domain, and the estimated cost of the conversion to them."""

    opsets: Mapping[str, int]
    cost: int


class _Group(NamedTuple):
    """Operator version and element types that several nodes of a model share."""

    operator: OperatorVersion
    types: Types


def rank_targets(
    nodes: ModelNodes, runtime: Runtime, registry: Registry, allow: Collection[Allow]
) -> list[TargetOpsets]:
    """Return combinations of supported opsets, the cheapest first; at equal cost, the nearest first.

    An unused domain keeps its nearest supported opset. If no conversion helps some node, see `_is_lost`, only
    the first combination is returned, to explain the failure.
    """
    costs = {
        domain: _opset_costs(domain, nodes, runtime, registry, allow)
        for domain in {**nodes.opsets, DEFAULT_DOMAIN: 0}
        if domain in runtime.opsets and not registry.is_open(domain)
    }
    unknown = IMPOSSIBLE_COST * sum(1 for each in nodes.nodes if _is_lost(each, runtime, registry))
    found = [
        TargetOpsets(
            dict(zip(costs, opsets, strict=True)), unknown + sum(map(lambda d, o: costs[d][o], costs, opsets))
        )
        for opsets in product(*costs.values())
    ]
    # The nearest opset of a domain that the model does not import is the newest supported one.
    current = {**runtime.opsets, **nodes.opsets}
    ranked = sorted(found, key=lambda each: (each.cost, _distance_of_opsets(each.opsets, current)))
    return ranked[:1] if unknown else ranked


def _is_lost(node: ModelNode, runtime: Runtime, registry: Registry) -> bool:
    """Return whether no conversion helps a node.

    Its attributes are refused, or its operator, in a known domain, has neither a definition nor a kernel.
    """
    if node.operator is not None:
        added = runtime.schemas.get(f"{node.domain}.{node.node.op_type}", NO_DIFFERENCE).adds
        return runtime.validates_nodes and not node.unknown_attributes.issubset(added)
    if not registry.has_domain(node.domain) or registry.is_open(node.domain):
        return False
    name, opset = f"{node.domain}.{node.node.op_type}", node.scope.opset_of(node.node.domain)
    runtimes = (runtime, get_runtime(runtime.falls_back)) if runtime.falls_back else (runtime,)
    kernels = chain.from_iterable(
        kernels.get(name, ()) for each in runtimes for kernels in (each.operators, each.internal_operators)
    )
    return all(each.versions[0] > opset for each in kernels)


def _distance_of_opsets(opsets: Mapping[str, int], current: Mapping[str, int]) -> int:
    return sum(abs(opset - current[domain]) for domain, opset in opsets.items())


def _opset_costs(
    domain: str, nodes: ModelNodes, runtime: Runtime, registry: Registry, allow: Collection[Allow]
) -> dict[int, int]:
    """Return the cost of each supported opset; for an unused domain (not ai.onnx), only of the nearest."""
    # Group by the domain of the operator: nonstandard nodes of the default domain have operators of a
    # runtime's domain, such as com.microsoft.
    groups = Counter(
        _Group(each.operator, each.types)
        for each in nodes.nodes
        if each.operator and each.operator.domain == domain
    )
    definitions = {registry.operator(each.operator.name, domain) for each in groups}
    operators = {each.name: each for each in definitions if each is not None}
    graph = build_version_graph(operators.values(), adapter_table())
    steps: nx.DiGraph[object] = nx.DiGraph()
    steps.add_nodes_from(graph)
    for source, target, data in graph.edges(data=True):
        if "step" in data and data["kind"] in STEP_COSTS:
            steps.add_edge(source, target, cost=STEP_COSTS[data["kind"]])
    opsets = range(1, min(runtime.opsets[domain], registry.newest_opset(domain)) + 1)
    if not groups and domain != DEFAULT_DOMAIN:
        opsets = range(min(nodes.opsets[domain], opsets[-1]), opsets[-1] + 1)[:1]
    for opset in opsets:
        default = opset if domain == DEFAULT_DOMAIN else nodes.opsets.get(DEFAULT_DOMAIN, opset)
        ends = NodeCosts(runtime, registry, Bridges(runtime, registry, default, allow))
        for group in groups:
            for reached, cost in ends.of(operators[group.operator.name], group.types, opset):
                steps.add_edge(reached, (opset, group), cost=cost)
    found = dict.fromkeys(opsets, 0)
    for group, count in groups.items():
        lengths = nx.single_source_dijkstra_path_length(steps, group.operator.id, weight="cost")
        for opset in opsets:
            found[opset] += count * int(lengths.get((opset, group), IMPOSSIBLE_COST))
    return found


class NodeCosts:
    """Costs of nodes after the conversion to an opset: inlining by the runtime, or further conversions."""

    def __init__(self, runtime: Runtime, registry: Registry, bridges: Bridges) -> None:
        self._runtime, self._registry = runtime, registry
        self._fallback = get_runtime(runtime.falls_back) if runtime.falls_back else runtime
        self._bridges = bridges

    def of(self, operator: Operator, types: Types, opset: int) -> Iterator[tuple[OperatorId, int]]:
        """Yield the vertices before the last edge of a path to an opset, each with the cost of this edge.

        This is the operator version at the opset. If there is none, it is each removal, and the opset before
        the first version, where other operators replace the node.
        """
        version = operator.at(opset)
        if version is not None:
            yield (
                version.id,
                self._cost_of_version(operator, version, {name: each for name, each in types if each}),
            )
            return
        for each in operator.versions:
            if each.removal:
                yield OperatorId(*each.id[:2], each.removal.removed_in), EXPANSION_COST
        yield OperatorId(*operator.versions[0].id[:2], operator.versions[0].since_version - 1), EXPANSION_COST

    def _cost_of_version(self, operator: Operator, version: OperatorVersion, types: Mapping[str, str]) -> int:
        if self._runtime.kernel(version.id, types) or self._fallback.kernel(version.id, types):
            return 0
        return self.of_replacement(operator, version, types)

    def of_replacement(self, operator: Operator, version: OperatorVersion, types: Mapping[str, str]) -> int:
        """Return the cost of a node without a usable kernel; `types` has the known types by type variable."""
        if replaced_from(operator) == version.since_version:
            return EXPANSION_COST  # the conversion replaces all nodes of a deprecated version
        if version.has_function and self._runtime.expands_functions:
            return BODY_COST
        if find_equivalents(version, types, self._runtime, self._registry):
            return EQUIVALENT_COST
        if self._bridges.find(version, types):
            return BRIDGE_COST
        before = operator.versions[0].before
        has_expansion = StepKey(*version.id, version.since_version) in adapter_table()
        has_expansion |= before is not None and not isinstance(before, Refuse)
        return EXPANSION_COST if version.has_function or has_expansion else IMPOSSIBLE_COST


def find_equivalents(
    version: OperatorVersion, types: Mapping[str, str], runtime: Runtime, registry: Registry
) -> tuple[Equivalent, ...]:
    """Return equivalents of an operator version that have a kernel; `types` has types by type variable."""
    return tuple(
        each
        for domain in runtime.opsets
        if registry.is_open(domain)
        for each in equivalents(registry, domain).get(version.id, ())
        # Replacements have the type variables of the operators that they replace.
        if runtime.kernel(each.replacement, types)
    )


def replacements_of_unknown(
    nodes: ModelNodes, opsets: Mapping[str, int], runtime: Runtime, registry: Registry
) -> Iterator[Equivalent]:
    """Yield equivalents for nodes with operators that do not exist at the target opsets."""
    for node in nodes.nodes:
        version, opset = node.operator, opsets.get(node.domain)
        if version and opset and not registry.known_at(version.name, opset, node.domain):
            types = {name: each for name, each in node.types if each}
            yield from find_equivalents(version, types, runtime, registry)
