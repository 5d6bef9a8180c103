"""Recorded groups of nodes that are unchanged, so that their originals can be restored."""

from collections.abc import Iterator, Sequence, Set
from hashlib import blake2b
from typing import NamedTuple, cast

from opshift.converter.reversible.record import Precondition, RecordEntry, RecordPart, damaged_record
from opshift.converter.reversible.value_index import ValueIndex, free_names
from opshift.inference.scope import Scope
from opshift.inference.survey import ContainerSurvey
from opshift.model.errors import CannotConvert
from opshift.model.messages import AttributeProto, DecodeError, NodeProto
from opshift.model.offloaded_tensors import serialize
from opshift.model.operator_ids import canonical_domain
from opshift.rewriting.rewrite_node import INVALID_NODE_ERRORS

UNKNOWN_PRECONDITION = Precondition()


class Group(NamedTuple):
    """Group of nodes that replaced one original node.

    `opset` is the opset of the original node in its domain; `place` is the position at which this node is
    restored. `positions` are the positions of the group's nodes, in the order of `entry.group`. `inner` are
    the names of values that the group produces and the original node does not.
    """

    entry: RecordEntry
    original: NodeProto
    opset: int
    positions: tuple[int, ...]
    place: int
    inner: frozenset[str]

    @property
    def is_original(self) -> bool:
        """Whether the group consists of the original node itself."""
        return not self.entry.original


def intact_groups(
    part: RecordPart, surveyed: ContainerSurvey, value_index: ValueIndex, outside: Set[str]
) -> list[Group]:
    """Return the unchanged groups whose originals can be restored.

    `outside` are the names of values that other graphs use.
    """
    constants = frozenset(part.constants)
    # Value names are unique in a graph and its subgraphs (IR specification, "Names Within a Graph").
    defined = set[str]().union(*(each.scope.defined_names for each in surveyed.walk()))
    groups: list[Group] = []
    claimed: set[int] = set()
    for entry in part.entries:
        group = _find_group(entry, value_index, constants) if entry.group else None
        # A node belongs to one group only: the first entry wins.
        if group is None or not claimed.isdisjoint(group.positions):
            continue
        if not _is_isolated(group, value_index, outside):
            continue
        if _can_restore(group, surveyed.scope, defined, value_index):
            claimed.update(group.positions)
            groups.append(group)
    return list(_compatible_groups(groups))


def _find_group(entry: RecordEntry, value_index: ValueIndex, constants: Set[str]) -> Group | None:
    digest = value_index.digest(entry.group, constants)
    positions = tuple(value_index.producers[name] for name in entry.group) if digest else ()
    if not digest or digest != entry.digest or len(set(positions)) != len(positions):
        return None
    nodes = [value_index.nodes[position] for position in positions]
    original = read_original(entry, nodes[0])
    opset = entry.opset(canonical_domain(original.domain))
    produced = {name for node in nodes for name in node.output[:] if name}
    restored = produced.intersection(original.output[:])
    if not restored or opset is None:
        return None
    # All consumers of the original's outputs come after the first node that produces one of them.
    place = min(value_index.producers[name] for name in restored)
    return Group(entry, original, opset, positions, place, frozenset(produced - restored))


def read_original(entry: RecordEntry, node: NodeProto) -> NodeProto:
    """Return the original node of an entry, as a message of the class of `node`.

    An entry without a serialized node describes `node` itself. InvalidModel is raised for damaged entries.
    """
    if not entry.original:
        return node
    original = type(node)()
    try:
        original.ParseFromString(bytes.fromhex(entry.original))
    except DecodeError as error:
        raise damaged_record() from error
    return original


def _is_isolated(group: Group, value_index: ValueIndex, outside: Set[str]) -> bool:
    """Return whether only nodes of the group read its inner values."""
    own_positions = frozenset(group.positions)
    reader_positions = (value_index.consumers.get(name, ()) for name in group.inner)
    return group.inner.isdisjoint(outside) and all(map(own_positions.issuperset, reader_positions))


def _can_restore(group: Group, scope: Scope, defined: Set[str], value_index: ValueIndex) -> bool:
    """Return whether the original's domains and inputs exist, preconditions hold, and output names are free.

    `defined` are the names of values that the graph and its subgraphs define.
    """
    original = group.original
    if not all(each.domain in scope.opsets for each in group.entry.opsets):
        return False
    # The original needs its inputs before the position at which it is restored.
    for name in free_names(original):
        producer = value_index.producers.get(name)
        if name in group.inner or (producer is None and not scope.is_visible(name)):
            return False
        if producer is not None and producer >= group.place:
            return False
    new_outputs = [name for name in original.output if name and name not in value_index.producers]
    if any(map(scope.is_visible, new_outputs)) or not defined.isdisjoint(new_outputs):
        return False
    read = frozenset[str]().union(*map(value_index.reads, group.positions))
    return preconditions_hold(group.entry.inputs, tuple(preconditions_of(original, read, scope)))


def _compatible_groups(groups: list[Group]) -> Iterator[Group]:
    """Yield the groups that can be restored together.

    Groups are skipped if their originals read inner values of other groups, or produce a value that an
    earlier original produces.
    """
    inner = {name for group in groups for name in group.inner}
    produced: set[str] = set()
    for group in groups:
        outputs = set(filter(None, group.original.output))
        if inner.isdisjoint(free_names(group.original)) and produced.isdisjoint(outputs):
            produced |= outputs
            yield group


def preconditions_of(original: NodeProto, read: Set[str], scope: Scope) -> Iterator[Precondition]:
    """Yield the precondition of each input of a node.

    If attributes of the node refer to attributes of a function call, the last precondition is a digest of all
    attribute values.
    `read` are the names that the group of nodes reads. For a constant input that the group does not read, the
    precondition has a digest of the value, because the conversion may have built this value into the group.
    """
    for name in original.input:
        yield _precondition_of(name, name not in read, scope) if name else UNKNOWN_PRECONDITION
    if any(each.ref_attr_name for each in original.attribute):
        # sorted, because the order of attributes has no meaning
        by_name = sorted(scope.node(original).attributes.items())
        yield Precondition(value=_digest("".join(f"{name} {_fact_text(value)}" for name, value in by_name)))


def preconditions_hold(then: Sequence[Precondition], now: Sequence[Precondition]) -> bool:
    """Return whether recorded preconditions still hold.

    Unknown types and ranks match everything. A recorded value has to be unchanged.
    """
    return len(then) == len(now) and all(map(_preconditions_agree, then, now))


def _preconditions_agree(then: Precondition, now: Precondition) -> bool:
    same_type = not then.type or not now.type or then.type == now.type
    same_rank = -1 in (then.rank, now.rank) or then.rank == now.rank
    return same_type and same_rank and then.value in ("", now.value)


def _precondition_of(name: str, with_value: bool, scope: Scope) -> Precondition:
    try:
        rank = scope.rank(name)
        value = scope.constant(name) if with_value else None
        digest = _digest(repr(value)) if value else ""
        return Precondition(
            type=scope.element_type(name) or "", rank=-1 if rank is None else rank, value=digest
        )
    except (CannotConvert, *INVALID_NODE_ERRORS):
        # inference failed because the model is invalid, so this value has no known facts
        return UNKNOWN_PRECONDITION


def _fact_text(value: object) -> str:
    return serialize(cast("AttributeProto", value)).hex() if hasattr(value, "ref_attr_name") else repr(value)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()
