"""Carry out what a plan says of the record: put originals back, and take out what goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opshift.converter.reversible.reversal import Reversal


def put_back(reversal: Reversal, nodes: Any) -> None:
    """Write the originals where they go, and empty the nodes that are to be removed."""
    for position, each in reversal.returns.items():
        if not each.group.is_original:
            nodes[position].CopyFrom(each.group.original)
    for position in reversal.removed:
        nodes[position].Clear()


def sweep(reversal: Reversal, container: Any) -> None:
    """Remove emptied nodes, constants that nothing reads, and what is said of values that are gone."""
    if reversal.removed:
        _remove(container.node, lambda node: not node.ByteSize())
    for field in ("initializer", "value_info") if reversal.dropped else ():
        if hasattr(container, field):
            _remove(getattr(container, field), lambda each: each.name in reversal.dropped)


def _remove(field: Any, is_gone: Callable[[Any], bool]) -> None:
    """Take messages out of a repeated field in linear time; the others keep their order."""
    keys = [is_gone(each) for each in field]
    count = sum(keys)
    if count:
        ordered = iter(keys)
        field.sort(key=lambda _: next(ordered))
        del field[-count:]
