"""Which recorded groups of nodes are there as they were left, so that their originals can be put back."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any, NamedTuple

from opshift.converter.reversible.given import agree, givens
from opshift.converter.reversible.holding import Holding, free_names
from opshift.converter.reversible.record import Entry, Part, unusable
from opshift.converter.survey import Surveyed
from opshift.registry.messages import DecodeError
from opshift.registry.names import canonical_domain


class Group(NamedTuple):
    """A group of nodes that stands for one.

    Attributes:
        entry: as recorded.
        original: the NodeProto that it stands for.
        opset: the opset of its domain that the original is written for.
        positions: of its nodes, in order.
        place: where the original goes.
        inner: the values that only the group makes.
    """

    entry: Entry
    original: Any
    opset: int
    positions: tuple[int, ...]
    place: int
    inner: frozenset[str]

    @property
    def is_original(self) -> bool:
        """Whether the group is the node itself."""
        return not self.entry.original


def intact_groups(part: Part, surveyed: Surveyed, holding: Holding, outside: Set[str]) -> list[Group]:
    """The groups that nobody changed and that nothing else looks into.

    Args:
        part: what is recorded of this graph or function.
        surveyed: the graph or function.
        holding: the same.
        outside: names that are used in other graphs.

    Raises:
        InvalidModel: the record holds something that is no node.
    """
    constants = frozenset(part.constants)
    found: list[Group] = []
    claimed: set[int] = set()
    for entry in part.entries:
        group = _group(entry, holding, constants) if entry.group else None
        if group is None or not claimed.isdisjoint(group.positions):
            continue
        if _is_alone(group, holding, outside) and _can_return(group, surveyed, holding):
            claimed.update(group.positions)
            found.append(group)
    return list(_compatible(found))


def _group(entry: Entry, holding: Holding, constants: Set[str]) -> Group | None:
    digest = holding.digest(entry.group, constants)
    positions = tuple(holding.makers[name] for name in entry.group) if digest else ()
    if not digest or digest != entry.digest or len(set(positions)) != len(positions):
        return None
    nodes = [holding.nodes[each] for each in positions]
    original = read_original(entry, nodes[0])
    opset = entry.opset(canonical_domain(original.domain))
    made = {name for node in nodes for name in node.output[:] if name}
    returned = made.intersection(original.output[:])
    if not returned or opset is None:
        return None
    place = min(holding.makers[name] for name in returned)
    return Group(entry, original, opset, positions, place, frozenset(made - returned))


def read_original(entry: Entry, node: Any) -> Any:
    """The node of an entry, of the class of `node`, which it is itself if the entry holds none.

    Raises:
        InvalidModel: the entry holds something else.
    """
    if not entry.original:
        return node
    original = type(node)()
    try:
        original.ParseFromString(bytes.fromhex(entry.original))
    except DecodeError as error:
        raise unusable() from error
    return original


def _is_alone(group: Group, holding: Holding, outside: Set[str]) -> bool:
    """Whether nothing else reads the group's inner values."""
    within = frozenset(group.positions)
    readers = (holding.readers.get(name, ()) for name in group.inner)
    return group.inner.isdisjoint(outside) and all(map(within.issuperset, readers))


def _can_return(group: Group, surveyed: Surveyed, holding: Holding) -> bool:
    """Whether the original finds its inputs as they were, and makes nothing that is made elsewhere."""
    scope, original = surveyed.scope, group.original
    if not all(each.domain in scope.opsets for each in group.entry.opsets):
        return False
    for name in free_names(original):
        maker = holding.makers.get(name)
        if name in group.inner or (maker is None and not scope.sees(name)):
            return False
        if maker is not None and maker >= group.place:
            return False
    anew = [name for name in original.output if name and name not in holding.makers]
    if any(scope.sees(name) or name in below for name in anew for below in _names_below(surveyed)):
        return False
    read = frozenset[str]().union(*map(holding.reads, group.positions))
    return agree(group.entry.inputs, givens(original, read, scope))


def _names_below(surveyed: Surveyed) -> Iterator[Set[str]]:
    yield frozenset()
    waiting = [each[3] for each in surveyed.subgraphs]
    while waiting:
        current = waiting.pop()
        yield current.scope.known
        waiting += [each[3] for each in current.subgraphs]


def _compatible(groups: list[Group]) -> Iterator[Group]:
    """Leave out the groups whose originals read inner values of others, or make what another makes."""
    inner = {name for group in groups for name in group.inner}
    made: set[str] = set()
    for group in groups:
        outputs = set(filter(None, group.original.output))
        if inner.isdisjoint(free_names(group.original)) and made.isdisjoint(outputs):
            made |= outputs
            yield group
