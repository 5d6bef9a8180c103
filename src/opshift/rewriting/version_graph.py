"""Version graph: a networkx graph of operator versions and the steps between them.

Nodes are operator versions and expansions. An expansion such as `ai.onnx.Scale:10` represents the operators
that replace a node of Scale at opset 10, which lacks Scale. Its number is an opset, not a version.

Edges have a `kind`. The edges of a conversion also have a `step`, with its kind and the element types
that it affects:

* from a version to the next one and back;
* from the last version of a removed operator to its expansion at the opset that removes it;
* from the first version of an operator with `before:` to its expansion at the previous opset.

The other edges name operators that replace a node:

* `replacement`, from an expansion or a deprecated version to the operators that the definition names;
* `body`, from the version of a function to the operators of its body.

The operators that an adapter emits are unknown, so its expansion has edges only to the replacements that the
definition names.

Building the graph checks each step against the definitions and the table of adapters. `compile_routes` builds
the graph of all operators, checks that every named operator exists, and stores the shortest paths.
Conversions follow these paths, and build a graph only for an operator without compiled routes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from opshift.adapters.core.adapter_table import Adapter, StepKey
from opshift.model.operator_ids import OperatorId
from opshift.registry.errors import UNREGISTERED_REMEDY, DefinitionError
from opshift.registry.models import UNBOUNDED, Operator, OperatorVersion
from opshift.registry.steps import RenameOp, StepAction
from opshift.rewriting.version_steps import StepKind, VersionStep, build_steps

if TYPE_CHECKING:
    import networkx as nx

ExpressionKind = Literal["replacement", "body"]


def build_version_graph(
    operators: Iterable[Operator], table: Mapping[StepKey, Adapter]
) -> nx.DiGraph[OperatorId]:
    """Return the version graph of some operators.

    The node of an operator version has the `OperatorVersion` as its attribute `version`. Expansions have no
    attributes. A named operator outside `operators` is a node without attributes; its number is an opset.

    Raises:
        DefinitionError: a step is undefined, its declaration contradicts the definitions of the versions, or
            it disagrees with the table of adapters.
    """
    # Imported here: conversions along compiled routes do not need networkx.
    import networkx as nx

    table = dict(table)  # copied, because other threads may register adapters during the iteration
    graph: nx.DiGraph[OperatorId] = nx.DiGraph()
    definitions = {(operator.domain, operator.name): operator for operator in operators}
    for operator in definitions.values():
        graph.add_nodes_from((version.id, {"version": version}) for version in operator.versions)
        steps = list(build_steps(operator, table))
        _check_unused_adapters(operator, steps, table)
        for step in steps:
            graph.add_edge(step.source.id, step.target_id, kind=step.kind, step=step)
    for source, kind, named in _edges_to_expressions(definitions.values()):
        definition = definitions.get((named.domain, named.op_type))
        version = definition.at(named.since_version) if definition else None
        graph.add_edge(source, version.id if version else named, kind=kind)
    return graph


def check_expressions(graph: nx.DiGraph[OperatorId]) -> None:
    """Raise DefinitionError if a replacement, or an operator of a function body, does not exist."""
    for source, named in graph.edges:
        kind: StepKind | ExpressionKind = graph.edges[source, named]["kind"]
        if kind in ("replacement", "body") and "version" not in graph.nodes[named]:
            noun = {"body": "body operator"}.get(kind, kind)
            opset = f"opset {named.since_version} of {named.domain}"
            raise DefinitionError(f"{source}: the {noun} {named.op_type} is not in {opset}")


def shortest_paths(graph: nx.DiGraph[OperatorId]) -> Iterator[tuple[OperatorId, ...]]:
    """Yield the shortest path of steps between any two connected nodes, both ends included."""
    import networkx as nx

    steps = nx.get_edge_attributes(graph, "step")
    for _, paths in nx.all_pairs_shortest_path(graph.edge_subgraph(steps)):
        yield from (tuple(path) for path in paths.values() if len(path) > 1)


def _edges_to_expressions(
    operators: Iterable[Operator],
) -> Iterator[tuple[OperatorId, ExpressionKind, OperatorId]]:
    """Yield source, kind and target of each edge to an operator that replaces a node."""
    for version in (version for operator in operators for version in operator.versions):
        domain, name, since = version.id
        body = list(_body_operators(version))
        for each in body:
            yield version.id, "body", each
        if version.deprecation is not None:
            others = (each for each in version.deprecation.replacements if each != name)
            yield from _edges_to_replacements(version.id, since, *others)
        if version.removal is not None:
            removal = version.removal
            expansion = OperatorId(domain, name, removal.removed_in)
            names = (*removal.replacements, *_new_names(removal.up))
            yield from _edges_to_replacements(expansion, removal.removed_in, *names)
        if version.before is not None:
            expansion = OperatorId(domain, name, since - 1)
            yield from _edges_to_replacements(expansion, since - 1, *_new_names(version.before))
            if version.before == "body":
                for each in body:
                    yield expansion, "replacement", each


def _body_operators(version: OperatorVersion) -> Iterator[OperatorId]:
    if version.body is not None:
        for node in version.body.nodes:
            yield OperatorId(node.domain, node.op_type, version.body.opset_imports.get(node.domain, 0))


def _edges_to_replacements(
    source: OperatorId, opset: int, *names: str
) -> Iterator[tuple[OperatorId, ExpressionKind, OperatorId]]:
    for name in names:
        domain, _, op_type = name.rpartition(".")
        is_other = domain not in ("", source.domain)
        # Opsets of different domains are unrelated, so take the newest version in a different domain.
        named = OperatorId(domain or source.domain, op_type, UNBOUNDED if is_other else opset)
        yield source, "replacement", named


def _new_names(action: StepAction | Literal["body"]) -> Iterator[str]:
    verbs = action if isinstance(action, tuple) else ()
    return (verb.op_type for verb in verbs if isinstance(verb, RenameOp))


def _check_unused_adapters(
    operator: Operator, edges: list[VersionStep], table: Mapping[StepKey, Adapter]
) -> None:
    steps = {(edge.source.since_version, edge.opset) for edge in edges}
    # Adapters that build function bodies, or replace nodes at one opset, have equal source and target.
    functions = [each for each in operator.versions if each.has_context_dependent_function]
    steps |= {(each.since_version, each.since_version) for each in operator.versions}
    for pair in table:
        if (pair.domain, pair.op_type) != (operator.domain, operator.name):
            continue
        if (pair.source, pair.target) not in steps:
            reason = f"{pair}: an adapter is registered, but the versions are not consecutive"
            raise DefinitionError(reason)
    for each in functions:
        if operator.versions[0].before != "adapter" and StepKey(*each.id, each.since_version) not in table:
            reason = f"{each.id}: no adapter is registered that builds the function body"
            raise DefinitionError(reason, remedy=f"register one with @function_body; {UNREGISTERED_REMEDY}")
