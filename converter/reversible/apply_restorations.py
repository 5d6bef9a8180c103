"""Restoration of recorded nodes in a model, as planned.

Apart from `restore`, which plans it and imports pydantic: every conversion applies a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from opshift.converter.plan.restorations import Restorations
from opshift.model.graphs import ContainerProto
from opshift.model.messages import Message, NodeProto

if TYPE_CHECKING:
    from opshift.model.messages import Repeated


Item = TypeVar("Item", bound=Message)


def restore_originals(reversal: Restorations, nodes: Sequence[NodeProto]) -> None:
    """Replace nodes with their originals, and clear the nodes to be removed."""
    for position, each in reversal.restored.items():
        if not each.group.is_original:
            nodes[position].CopyFrom(each.group.original)
    for position in reversal.removed:
        # nodes are only cleared here, so that all planned positions stay valid
        nodes[position].Clear()


def remove_leftovers(reversal: Restorations, container: ContainerProto) -> None:
    """Remove cleared nodes, unused added constants, and the value_info of removed values."""
    if reversal.removed:
        _remove(container.node, lambda node: not node.ByteSize())
    for field in ("initializer", "value_info") if reversal.dropped else ():
        if hasattr(container, field):
            _remove(getattr(container, field), lambda each: each.name in reversal.dropped)


def _remove(field: Repeated[Item], is_removed: Callable[[Item], bool]) -> None:
    """Remove messages from a repeated field in linear time; the remaining ones keep their order."""
    keys = [is_removed(each) for each in field]
    count = sum(keys)
    if count:
        # deleting single items is quadratic; a stable sort moves them to the end, to delete them at once
        ordered = iter(keys)
        field.sort(key=lambda _: next(ordered))
        del field[-count:]
