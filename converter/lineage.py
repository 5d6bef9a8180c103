"""The graph of operator versions: nodes are versions, edges are the steps between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from opshift.adapters.expansion import run_body
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter, StepFunction
from opshift.adapters.table import Adapter, Pair
from opshift.adapters.type_guard import Guard, lost_types, type_bridge, type_guard
from opshift.adapters.verbs import run_verbs
from opshift.registry.bodies import body_flaws
from opshift.registry.element_types import element_names
from opshift.registry.errors import DefinitionError
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.names import OperatorId
from opshift.registry.rules import is_derivable, misused, refutations
from opshift.registry.steps import Answer, Refuse

if TYPE_CHECKING:
    import networkx as nx

How = Literal["compatible", "guarded", "declared", "adapter", "refused"]


@dataclass(frozen=True)
class Edge:
    """One step of one operator.

    `target` is `None` where the operator leaves its set; nodes arrive at `opset`. Without a function
    nodes stay as they are. `concerns` names the element types without which they stay as they are too.
    """

    source: OperatorVersion
    target: OperatorVersion | None
    opset: int
    how: How
    function: StepFunction | None
    change: str = ""
    reason: str = ""
    concerns: frozenset[str] | None = None


def lineage(operator: Operator, table: Mapping[Pair, Adapter]) -> nx.DiGraph[OperatorId]:
    """All versions of an operator and the steps between neighbours, both ways.

    Raises:
        DefinitionError: a step is not answered, its answer is refuted by the definitions, or it and the
            table of adapters disagree.
    """
    import networkx as nx

    graph: nx.DiGraph[OperatorId] = nx.DiGraph()
    graph.add_nodes_from(version.id for version in operator.versions)
    edges = list(_edges(operator, table))
    for edge in edges:
        graph.add_edge(edge.source.id, _arrival(edge), step=edge)
    _no_stray_adapters(operator, edges, table)
    return graph


def _arrival(edge: Edge) -> OperatorId:
    return OperatorId(edge.source.domain, edge.source.name, edge.opset)


def edge(operator: Operator, start: int, opset: int, table: Mapping[Pair, Adapter]) -> Edge:
    """The step of the version `start` that arrives at an opset.

    Raises:
        DefinitionError: as for `lineage`.
        StopIteration: there is no such step.
    """
    return _edge(
        next(way for way in _ways(operator) if (way.source.since_version, way.opset) == (start, opset)), table
    )


class _Way(NamedTuple):
    """A step as its definitions tell it."""

    source: OperatorVersion
    target: OperatorVersion | None
    opset: int
    answer: Answer | Literal["body"] | None
    change: str


def _edges(operator: Operator, table: Mapping[Pair, Adapter]) -> Iterator[Edge]:
    return (_edge(way, table) for way in _ways(operator))


def _ways(operator: Operator) -> Iterator[_Way]:
    for old, new in zip(operator.versions, operator.versions[1:], strict=False):
        step = new.step
        change = step.change if step else ""
        yield _Way(old, new, new.since_version, step.up if step else None, change)
        yield _Way(new, old, old.since_version, step.down if step else None, change)
    first = operator.versions[0]
    if first.before is not None:
        change = "the operator is expressed by others"
        yield _Way(first, None, first.since_version - 1, first.before, change)
    for version in operator.versions:
        if version.removal:
            yield _Way(version, None, version.removal.removed_in, version.removal.up, version.removal.mapping)


def _edge(way: _Way, table: Mapping[Pair, Adapter]) -> Edge:
    source, target, opset, answer, change = way
    pair = Pair(source.domain, source.name, source.since_version, opset)
    if answer == "adapter":
        adapter = table.get(pair)
        if adapter is None:
            raise DefinitionError(f"{pair}: no adapter is registered")
        return Edge(source, target, opset, "adapter", _bridged(source, target, adapter), change)
    if pair in table:
        raise DefinitionError(f"{pair}: an adapter is registered, not declared")
    if isinstance(answer, Refuse):
        return Edge(source, target, opset, "refused", _refusing(answer), change, answer.refuse)
    if answer == "body":
        return _expanding(source, opset, change, pair)
    if target is None:
        return _leaving(source, opset, answer, change, pair)
    if answer is None and not is_derivable(source, target):
        return _unanswered(source, target, opset, change, pair)
    verbs = answer if isinstance(answer, tuple) else ()
    wrong = [*(misused(verb, source, target) for verb in verbs), *_refuted(source, target, verbs)]
    first = next((reason for reason in wrong if reason), None)
    if first:
        raise DefinitionError(f"{pair}: {first}")
    guard = type_guard(source, target)
    if not verbs:
        how: How = "guarded" if guard else "compatible"
        lost = frozenset(_lost_elements(source, target))
        return Edge(source, target, opset, how, _guarding(guard), change, concerns=lost)
    return Edge(source, target, opset, "declared", _in_turn(guard, run_verbs(verbs, source, target)), change)


def _lost_elements(source: OperatorVersion, target: OperatorVersion) -> Iterator[str]:
    for types in lost_types(source, target).values():
        for each in types:
            yield from element_names(each)


def _refuted(source: OperatorVersion, target: OperatorVersion, verbs: tuple[object, ...]) -> Iterator[str]:
    for refutation in refutations(source, target, verbs):  # type: ignore[arg-type]  # verbs are AnyVerb
        yield f"{refutation.rule}: {refutation.reason}"


def _expanding(source: OperatorVersion, opset: int, change: str, pair: Pair) -> Edge:
    flaw = next(body_flaws(source), None)
    if flaw is not None:
        raise DefinitionError(f"{pair}: {flaw.reason}")
    return Edge(source, None, opset, "declared", run_body(source), change)


def _leaving(source: OperatorVersion, opset: int, answer: Answer | None, change: str, pair: Pair) -> Edge:
    if not isinstance(answer, tuple):
        raise DefinitionError(f"{pair}: an operator that leaves its set needs an adapter, verbs or a refusal")
    return Edge(source, None, opset, "declared", run_verbs(answer, source, None), change)


def _unanswered(
    source: OperatorVersion, target: OperatorVersion, opset: int, change: str, pair: Pair
) -> Edge:
    if opset > source.since_version:
        raise DefinitionError(f"{pair}: the step is not answered")
    reason = "no way down is defined for this step"
    return Edge(source, target, opset, "refused", _refusing(Refuse(refuse=reason)), change, reason)


def _refusing(answer: Refuse) -> StepFunction:
    def refuse(node: Node, out: Rewriter) -> None:
        raise CannotConvert(answer.refuse, remedy=answer.remedy)

    return refuse


def _bridged(source: OperatorVersion, target: OperatorVersion | None, rewrite: StepFunction) -> StepFunction:
    """An adapter sees to types itself, but for those that casts bridge."""
    return rewrite if target is None else _in_turn(type_bridge(source, target), rewrite)


def _guarding(guard: Guard | None) -> StepFunction | None:
    return _in_turn(guard, lambda node, out: out.become(node)) if guard else None


def _in_turn(guard: Guard | None, rewrite: StepFunction) -> StepFunction:
    if guard is None:
        return rewrite

    def guarded(node: Node, out: Rewriter) -> None:
        if not guard(node, out):
            rewrite(node, out)

    return guarded


def _no_stray_adapters(operator: Operator, edges: list[Edge], table: Mapping[Pair, Adapter]) -> None:
    steps = {(edge.source.since_version, edge.opset) for edge in edges}
    for pair in table:
        if (pair.domain, pair.op_type) != (operator.domain, operator.name):
            continue
        if (pair.source, pair.target) not in steps:
            raise DefinitionError(f"{pair}: an adapter is registered, but these are no neighbouring versions")
