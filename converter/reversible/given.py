"""What a group of nodes takes for granted of the values that its original reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from hashlib import blake2b
from typing import Any

from opshift.adapters.elsewhere import serialized
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.converter.reversible.record import Given
from opshift.converter.rewrite import BROKEN_RULES
from opshift.converter.scope import Scope

UNKNOWN = Given()


def givens(original: Any, read: Set[str], scope: Scope) -> tuple[Given, ...]:
    """Of each input of a NodeProto; `read` are the names that its group reads.

    In a function whose calls give attributes, what they give is last.
    """
    return tuple(_all(original, read, scope))


def agree(then: Sequence[Given], now: Sequence[Given]) -> bool:
    """Whether nothing known at both times differs, and what is part of the group is still the same."""
    return len(then) == len(now) and all(map(_agree, then, now))


def _agree(then: Given, now: Given) -> bool:
    has_type = not then.type or not now.type or then.type == now.type
    has_rank = -1 in (then.rank, now.rank) or then.rank == now.rank
    return has_type and has_rank and then.value in ("", now.value)


def _all(original: Any, read: Set[str], scope: Scope) -> Iterator[Given]:
    for name in original.input:
        yield _given(name, name not in read, scope) if name else UNKNOWN
    if any(each.ref_attr_name for each in original.attribute):
        yield Given(value=_attributes_digest(scope.node(original)))


def _given(name: str, has_value: bool, scope: Scope) -> Given:
    try:
        shape = scope.shape(name)
        value = scope.constant(name) if has_value else None
        rank = -1 if shape is None else len(shape)
        digest = _digest(repr(value)) if value else ""
        return Given(type=scope.element_type(name) or "", rank=rank, value=digest)
    except (CannotConvert, *BROKEN_RULES):
        return UNKNOWN


def _attributes_digest(node: Node) -> str:
    stated = sorted(node.attributes.items())
    return _digest("".join(f"{name} {_text(value)}" for name, value in stated))


def _text(value: Any) -> str:
    return serialized(value).hex() if hasattr(value, "ref_attr_name") else repr(value)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()
