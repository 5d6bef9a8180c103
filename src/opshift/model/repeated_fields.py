"""Reordering and deletion of messages in repeated fields."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from opshift.model.messages import Message

if TYPE_CHECKING:
    from opshift.model.messages import Repeated

Item = TypeVar("Item", bound=Message)


def sort_by_keys(field: Repeated[Item], keys: Iterable[int]) -> None:
    """Sort a repeated field by one key per message; messages with equal keys keep their order."""
    # A repeated field can neither insert nor take a list of keys. upb calls the key function once per
    # message, in the order of the field, so an iterator delivers the keys. The message becomes the unused
    # default of `next`: this takes less time than a function that ignores it.
    field.sort(key=partial(next, iter(keys)))


MAX_RUNS = 8
"""Maximum number of runs of neighbouring messages that are deleted one by one, which is quadratic."""


def remove_messages(field: Repeated[Item], is_removed: Iterable[bool]) -> None:
    """Remove the messages for which `is_removed` is true, in linear time; the others keep their order."""
    flags = bytes(is_removed)
    runs: list[slice] = []
    stop = 0
    while (start := flags.find(1, stop)) >= 0 and len(runs) <= MAX_RUNS:
        stop = flags.find(0, start)
        stop = len(flags) if stop < 0 else stop
        runs.append(slice(start, stop))
    if len(runs) <= MAX_RUNS:
        for run in reversed(runs):
            del field[run]
    else:
        # a stable sort moves them to the end, to delete them at once
        sort_by_keys(field, flags)
        del field[-sum(flags) :]
