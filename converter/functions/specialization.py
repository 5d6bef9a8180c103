"""Specialization of local functions: convert a function once for all calls, or once per group of calls.

A function is converted once, with the facts on which all its calls agree. If these facts do not suffice, it
is specialized: calls that differ in a fact that a step queried get a separate copy of the function.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from opshift.converter.functions.inlining import recursion_error
from opshift.inference.call_facts import CallFacts, CallSite, Fact
from opshift.inference.function_scope import CallScope, FunctionTable
from opshift.inference.scope import Scope
from opshift.inference.survey import ContainerSurvey
from opshift.model.graphs import node_label
from opshift.model.operator_ids import function_label

Specializations = Mapping[int, frozenset[Fact]]
"""Facts that distinguish the calls of a function, by the position of the function in the model."""


@dataclass(eq=False)
class FunctionVersion:
    """Function to convert, or a copy of a function for some of its calls.

    `outgoing_calls` are the calls in the function's nodes, each with the position of the called function.
    `call_sites` are the calls of this version; empty if it is unreachable. Only copies have a `name`.
    """

    index: int
    surveyed: ContainerSurvey
    outgoing_calls: list[tuple[int, CallSite]]
    call_sites: list[CallSite] = field(default_factory=list)
    name: str = ""


def build_function_versions(
    functions: FunctionTable,
    outer: list[tuple[int, CallSite]],
    survey: Callable[[int, str], FunctionVersion],
    splits: Specializations,
) -> list[FunctionVersion]:
    """Return the function versions to convert: every function in the order of the model, then the copies.

    `outer` are the calls from graphs, each with the position of the function. `survey` analyzes the function
    at a position; its second argument, for messages, names a caller. A function is not specialized if the
    copies would have too many nodes. Raise InvalidModel for recursion.
    """
    base = [survey(index, "") for index in range(len(functions.protos))]
    copies: list[FunctionVersion] = []
    copied_nodes = 0
    calls: dict[int, list[CallSite]] = defaultdict(list)
    for called, call in outer:
        calls[called].append(call)
    # Callers first, because the calls of a function are complete only when all callers are specialized.
    for index in _in_call_order(functions, base):
        groups = _groups_of_calls(functions, index, calls[index], splits.get(index, frozenset()))
        added_nodes = (len(groups) - 1) * functions.node_counts[index]
        if copied_nodes + added_nodes > functions.max_inferred_nodes:
            groups, added_nodes = [calls[index]], 0
            functions.exceeds_limit = True
        copied_nodes += added_nodes
        bodies = [base[index]] if len(groups) == 1 else [survey(index, _caller_text(each)) for each in groups]
        base[index] = bodies[0]
        copies += bodies[1:]
        for body, group in zip(bodies, groups, strict=True):
            body.call_sites = group
            assert isinstance(body.surveyed.scope, CallScope)
            body.surveyed.scope.call_facts = CallFacts(functions, index, group)
            for called, call in body.outgoing_calls if group else ():
                calls[called].append(call)
    return [*base, *copies]


def _caller_text(calls: list[CallSite]) -> str:
    proto = calls[0].proto
    return f", called by {node_label(proto.name, proto.op_type, proto.output)}"


def _in_call_order(functions: FunctionTable, bodies: Sequence[FunctionVersion]) -> Iterable[int]:
    sorter: TopologicalSorter[int] = TopologicalSorter({body.index: () for body in bodies})
    for body in bodies:
        for called, _ in body.outgoing_calls:
            sorter.add(called, body.index)
    try:
        return list(sorter.static_order())
    except CycleError as error:
        names = [function_label(functions.protos[index]) for index in error.args[1]]
        raise recursion_error(names) from error


def _groups_of_calls(
    functions: FunctionTable, index: int, calls: list[CallSite], split: frozenset[Fact]
) -> list[list[CallSite]]:
    if not split:
        return [calls]
    callers = CallFacts(functions, index, calls)
    asked = sorted(split)
    groups: dict[object, list[CallSite]] = {}
    for call in calls:
        groups.setdefault(callers.fact_key(call, asked), []).append(call)
    return list(groups.values()) or [[]]  # a function without calls is converted, too


def refine_specializations(
    functions: FunctionTable, refused: Iterable[Scope], splits: Specializations
) -> Specializations:
    """Extend the specializations by the facts that may have caused refusals.

    These are the facts on which the calls of a function with refused nodes disagree, and the facts on which
    the calls of its direct and indirect callers disagree. Shapes distinguish calls only as a last resort, to
    keep the number of copies low.
    """
    differing: dict[int, set[Fact]] = {}
    for callers in _with_calling_functions(functions, refused):
        new = callers.disagreements - splits.get(callers.index, frozenset())
        differing.setdefault(callers.index, set()).update(new)
    no_shapes = {
        index: {each for each in found if each.kind != "shape"} for index, found in differing.items()
    }
    chosen = {**splits}
    for index, found in (no_shapes if any(no_shapes.values()) else differing).items():
        if found:
            chosen[index] = splits.get(index, frozenset()) | found
    return chosen


def _with_calling_functions(functions: FunctionTable, scopes: Iterable[Scope]) -> Iterator[CallFacts]:
    """Yield the call facts of the functions of some scopes and of all functions that call them, each once."""
    waiting = [functions.call_facts_of(scope) for scope in scopes]
    seen: set[int] = set()
    while waiting:
        callers = waiting.pop()
        if callers is None or id(callers) in seen:
            continue
        seen.add(id(callers))
        yield callers
        waiting += [functions.call_facts_of(call.scope) for call in callers.calls]
