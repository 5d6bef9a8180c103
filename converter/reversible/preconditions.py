"""Preconditions of a recorded node: the known facts about the inputs that its original reads."""

from collections.abc import Iterator, Sequence, Set
from hashlib import blake2b
from typing import cast

from opshift.converter.reversible.record import Precondition
from opshift.inference.scope import Scope
from opshift.model.errors import CannotConvert
from opshift.model.messages import AttributeProto, NodeProto
from opshift.model.offloaded_tensors import serialize
from opshift.rewriting.rewrite_node import INVALID_NODE_ERRORS

UNKNOWN_PRECONDITION = Precondition()


def preconditions_of(original: NodeProto, read: Set[str], scope: Scope) -> Iterator[Precondition]:
    """Yield the precondition of each input of a node.

    If attributes of the node refer to attributes of calls, the last precondition is a digest of their values.
    `read` are the names that the group of nodes reads. The group does not depend on other constant inputs,
    because their values are part of it; a digest of these values is recorded instead.
    """
    for name in original.input:
        yield _precondition_of(name, name not in read, scope) if name else UNKNOWN_PRECONDITION
    if any(each.ref_attr_name for each in original.attribute):
        # sorted, because the order of attributes has no meaning
        by_name = sorted(scope.node(original).attributes.items())
        yield Precondition(value=_digest("".join(f"{name} {_text(value)}" for name, value in by_name)))


def preconditions_hold(then: Sequence[Precondition], now: Sequence[Precondition]) -> bool:
    """Return whether recorded preconditions still hold.

    Unknown types and ranks match everything. A recorded value has to be unchanged.
    """
    return len(then) == len(now) and all(map(_agree, then, now))


def _agree(then: Precondition, now: Precondition) -> bool:
    same_type = not then.type or not now.type or then.type == now.type
    same_rank = -1 in (then.rank, now.rank) or then.rank == now.rank
    return same_type and same_rank and then.value in ("", now.value)


def _precondition_of(name: str, with_value: bool, scope: Scope) -> Precondition:
    try:
        shape = scope.shape(name)
        value = scope.constant(name) if with_value else None
        rank = -1 if shape is None else len(shape)
        digest = _digest(repr(value)) if value else ""
        return Precondition(type=scope.element_type(name) or "", rank=rank, value=digest)
    except (CannotConvert, *INVALID_NODE_ERRORS):
        # inference failed because the model is invalid, so there are no facts about this value
        return UNKNOWN_PRECONDITION


def _text(value: object) -> str:
    return serialize(cast("AttributeProto", value)).hex() if hasattr(value, "ref_attr_name") else repr(value)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()
