"""One look at every node: is the model sound, which nodes have a step to take, which graphs lie within."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from opshift.converter.container import graphs_in
from opshift.converter.errors import InvalidModel
from opshift.converter.lines import Line
from opshift.converter.scope import QUIET, Scope, Standing

KEEP_ONE = "keep one of them"
DEEPEST = 64
"""How many graphs may lie within each other; protobuf itself reads fewer than that from bytes."""


@dataclass
class Surveyed:
    """One graph or function."""

    path: str
    scope: Scope
    todo: list[Line] = field(default_factory=list)
    """The nodes that may have a step to take, in order."""
    subgraphs: list[tuple[int, str, int, Surveyed]] = field(default_factory=list)
    """Position of the node, name of its attribute, position in it, and the graph there."""
    captured: set[str] = field(default_factory=set)
    """The values of graphs around that are read here or within."""

    def take_up(self, operators: Set[tuple[str, str]]) -> None:
        """Add all nodes of some operators, by domain and op_type, to those that may have a step to take."""
        found = {line[0]: line for line in self.todo}
        for line in self.scope.lines:
            if (line[1], line[2]) in operators and not self.scope.is_call(line):
                found[line[0]] = line
        self.todo = [found[position] for position in sorted(found)]
        for *_, inner in self.subgraphs:
            inner.take_up(operators)


Look = Callable[[Any, Scope], Standing]
"""Where a node stands; for an operator of the default domain asked once."""


def survey(scope: Scope, path: str, look: Look, depth: int = 0, *, keeps_lines: bool = False) -> Surveyed:
    """Go through a graph or function and all graphs within.

    Args:
        scope: the graph or function.
        path: what messages call it.
        look: tells where nodes stand.
        depth: how many graphs lie around it.
        keeps_lines: keep what is read for those who ask for facts; where nobody does, memory is dearer.

    Raises:
        InvalidModel: a value is read before it is made, or made twice; graphs lie too deep.
    """
    found = Surveyed(path, scope)
    known = scope.known
    covers, add, add_all = known.issuperset, known.add, known.update
    made = len(known)
    standings = scope.standings
    todo = found.todo
    lines: list[Line] = []
    once: dict[str, str] = {}
    """Each op_type, to hold none more than once."""
    # What `read_lines` does, in place: half the time of a conversion that changes little goes by in here.
    for index, proto in enumerate(scope.container.node):
        op_type, domain = proto.op_type, proto.domain
        inputs, outputs = proto.input[:], proto.output[:]
        if not covers(inputs):
            _capture(proto, found)
        standing = None if domain else standings.get(op_type)
        if standing is None:
            standing = look(proto, scope)
        if keeps_lines or standing is not QUIET:
            line = index, domain, once.setdefault(op_type, op_type), tuple(inputs), tuple(outputs)
            if keeps_lines:
                lines.append(line)
            if standing.has_step:
                todo.append(line)
            if standing.has_graphs:
                found.subgraphs += _subgraphs(index, proto, found, look, depth, keeps_lines)
        if len(outputs) == 1:
            add(outputs[0])
        else:
            add_all(outputs)
        made += len(outputs)
    if keeps_lines:
        scope.keep(lines)
    _require_clear_names(found, is_single=len(known) == made)
    return found


def _subgraphs(
    index: int, proto: Any, around: Surveyed, look: Look, depth: int, keeps_lines: bool
) -> Iterator[tuple[int, str, int, Surveyed]]:
    names: set[str] = set()
    for attribute in proto.attribute:
        graphs = list(graphs_in(attribute))
        if graphs and attribute.name in names:
            place = f"{around.path}, node {_label(proto)}"
            raise InvalidModel(f"attribute {attribute.name!r} is stated twice", place=place, remedy=KEEP_ONE)
        names.add(attribute.name)
        for position, graph in enumerate(graphs):
            where = f"{around.path} / {proto.name or proto.op_type}.{attribute.name}"
            if depth == DEEPEST:
                raise InvalidModel(f"graphs lie more than {DEEPEST} deep within each other", place=where)
            scope = around.scope.child(graph)
            scope.holder = proto
            inner = survey(scope, where, look, depth + 1, keeps_lines=keeps_lines)
            around.captured |= inner.captured - around.scope.known
            yield index, attribute.name, position, inner


def label(name: str, op_type: str, outputs: Sequence[str]) -> str:
    """How messages call a node."""
    return repr(name) if name else f"{op_type} -> {', '.join(map(str, outputs))}"


def _label(proto: Any) -> str:
    return label(proto.name, proto.op_type, proto.output)


def _capture(proto: Any, found: Surveyed) -> None:
    scope = found.scope
    missing = next((name for name in proto.input if not scope.sees(name)), None)
    if missing is None:
        found.captured.update(name for name in proto.input if name not in scope.known)
        return
    place = f"{found.path}, node {_label(proto)}"
    if any(missing in other.output for other in scope.container.node):
        raise InvalidModel(
            f"input {missing!r} is made by a node further down: the nodes are not in order, or form a cycle",
            place=place,
            remedy="sort the nodes topologically",
        )
    raise InvalidModel(f"input {missing!r} is made by no node, input or initializer", place=place)


def _require_clear_names(found: Surveyed, *, is_single: bool) -> None:
    if not is_single:
        _require_single(found.scope, found.path)
    _require_outputs(found.scope, found.path)
    if found.captured:
        _require_not_hidden(found)


def _require_not_hidden(found: Surveyed) -> None:
    hidden = next((name for name in found.captured if name in found.scope.known), None)
    if hidden is not None:
        raise InvalidModel(
            f"value {hidden!r} is read from around the graph, and then made in it",
            place=found.path,
            remedy="give the inner value another name",
        )


def _require_single(scope: Scope, path: str) -> None:
    made = scope.declared()
    for proto in scope.container.node:
        for name in filter(None, proto.output):
            if name in made:
                raise InvalidModel(f"value {name!r} is made twice", place=f"{path}, node {_label(proto)}")
            made.add(name)


def _require_outputs(scope: Scope, path: str) -> None:
    for name in scope.outputs:
        if not scope.sees(name):
            raise InvalidModel(f"output {name!r} is made by no node", place=path)
