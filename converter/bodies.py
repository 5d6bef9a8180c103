"""The functions of a model as they are converted: once for all calls, or once for each group of calls.

A function is converted once, with what all its calls agree on. Where that is not enough, it is specialised:
the calls that differ in what a step asked for get a copy of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from opshift.converter.call_scope import CallScope
from opshift.converter.callers import Asked, Call, Callers
from opshift.converter.errors import InvalidModel
from opshift.converter.functions import Functions, title
from opshift.converter.scope import Scope
from opshift.converter.survey import Surveyed, label

Splits = Mapping[int, frozenset[Asked]]
"""By the position of a function, the facts by which its calls are told apart."""


@dataclass(eq=False)
class Body:
    """A function, or one of its copies.

    Attributes:
        index: the position of the function in the model.
        surveyed: its nodes.
        made: the calls that it makes, and the positions of the functions they are of.
        calls: the calls that it is converted for; none if nothing reaches it.
        name: of a copy, what it is called.
    """

    index: int
    surveyed: Surveyed
    made: list[tuple[int, Call]]
    calls: list[Call] = field(default_factory=list)
    name: str = ""


def arrange(
    functions: Functions, outer: list[tuple[int, Call]], survey: Callable[[int, str], Body], splits: Splits
) -> list[Body]:
    """The bodies to convert: every function in the order of the model, then the copies.

    Args:
        functions: those of the model.
        outer: the calls that graphs make.
        survey: looks at the nodes of a function; the text tells which calls it is looked at for.
        splits: which functions are specialised, and by what.

    Raises:
        InvalidModel: a function calls itself, directly or through others.
    """
    first = [survey(index, "") for index in range(len(functions.protos))]
    copies: list[Body] = []
    calls: dict[int, list[Call]] = {}
    _collect(outer, calls)
    for index in _callers_first(functions, first):
        groups = _groups(functions, index, calls.get(index, []), splits.get(index, frozenset()))
        bodies = [first[index]] if len(groups) == 1 else [survey(index, _called_by(each)) for each in groups]
        first[index] = bodies[0]
        copies += bodies[1:]
        for body, group in zip(bodies, groups, strict=True):
            _attach(body, Callers(functions, index, group))
            if group:
                _collect(body.made, calls)
    return [*first, *copies]


def _called_by(calls: list[Call]) -> str:
    proto = calls[0].proto
    return f", called by {label(proto.name, proto.op_type, proto.output)}"


def _attach(body: Body, callers: Callers) -> None:
    body.calls = list(callers.calls)
    assert isinstance(body.surveyed.scope, CallScope)
    body.surveyed.scope.callers = callers


def _collect(made: list[tuple[int, Call]], calls: dict[int, list[Call]]) -> None:
    for index, call in made:
        calls.setdefault(index, []).append(call)


def _callers_first(functions: Functions, bodies: Sequence[Body]) -> Iterable[int]:
    sorter: TopologicalSorter[int] = TopologicalSorter({body.index: () for body in bodies})
    for body in bodies:
        for called, _ in body.made:
            sorter.add(called, body.index)
    try:
        return list(sorter.static_order())
    except CycleError as error:
        names = [title(functions.protos[index]) for index in error.args[1]]
        raise InvalidModel(
            f"functions call themselves: {' -> '.join(names)}",
            place=f"function {names[0]}",
            remedy="write the repetition as a Loop",
        ) from error


def _groups(functions: Functions, index: int, calls: list[Call], split: frozenset[Asked]) -> list[list[Call]]:
    if not split:
        return [calls]
    callers = Callers(functions, index, calls)
    asked = sorted(split)
    groups: dict[object, list[Call]] = {}
    for call in calls:
        groups.setdefault(callers.key(call, asked), []).append(call)
    return list(groups.values()) or [[]]


def more_splits(functions: Functions, refused: Iterable[Scope], splits: Splits) -> Splits:
    """`splits`, and what calls of the functions with refused nodes, and of those that call them, differ in.

    Sizes of dimensions are told apart only where nothing else is left.
    """
    differing: dict[int, set[Asked]] = {}
    for callers in _with_outer(functions, refused):
        new = callers.disagreed - splits.get(callers.index, frozenset())
        differing.setdefault(callers.index, set()).update(new)
    coarse = {index: {each for each in found if each.kind != "shape"} for index, found in differing.items()}
    chosen = {**splits}
    for index, found in (coarse if any(coarse.values()) else differing).items():
        if found:
            chosen[index] = splits.get(index, frozenset()) | found
    return chosen


def _with_outer(functions: Functions, scopes: Iterable[Scope]) -> Iterator[Callers]:
    """The callers of functions, and those of the functions that these calls are in, each once."""
    waiting = [functions.callers_of(scope) for scope in scopes]
    seen: set[int] = set()
    while waiting:
        callers = waiting.pop()
        if callers is None or id(callers) in seen:
            continue
        seen.add(id(callers))
        yield callers
        waiting += [functions.callers_of(call.scope) for call in callers.calls]
