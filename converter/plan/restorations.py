"""Planned restorations of one graph or function.

Apart from `reversible`, which imports pydantic: every conversion looks for a record, and applies a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from opshift.converter.rewrite.result import ComputedRewrite
from opshift.model.messages import ModelProto

if TYPE_CHECKING:
    from opshift.converter.reversible.intact_groups import Group
    from opshift.converter.reversible.record import RecordEntry
    from opshift.model.graphs import NodeRecord


METADATA_KEY: Final = "opshift.reversible"
"""Key in `ModelProto.metadata_props`."""


def has_record(model: ModelProto) -> bool:
    """Return whether a model contains a record."""
    return any(each.key == METADATA_KEY for each in model.metadata_props)


class Restoration(NamedTuple):
    """Original node that replaces its group, converted to the target if that differs from its opset.

    Attributes:
        group: the group to be replaced.
        operators: operators of the group's nodes, in order.
        result: conversion of the original to the target.
    """

    group: Group
    operators: tuple[str, ...]
    result: ComputedRewrite

    @property
    def is_whole(self) -> bool:
        """Whether the original is restored unchanged."""
        return len(self.result.nodes) == 1 and self.result.nodes[0].node is self.result.original

    @property
    def changes_nothing(self) -> bool:
        """Whether the original already is in the graph and stays unchanged."""
        return self.is_whole and self.group.is_original


@dataclass
class Restorations:
    """Restorations in one graph or function, and its record after the conversion.

    Attributes:
        restored: restorations by position.
        kept_groups: groups that stay in the model and in the record.
        removed: positions of nodes to be removed.
        dropped: names of constants and inner values to be removed.
        restored_positions: positions of nodes in restored groups, which are not converted any more.
        entries: entries of the new record, without digests.
        constants: names of constants that conversions added and that may still exist.
        holders: first output of the node that holds a subgraph after the conversion, by the position of the
            original holder and the attribute.
    """

    restored: dict[int, Restoration] = field(default_factory=dict)
    kept_groups: list[Group] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    restored_positions: set[int] = field(default_factory=set)
    entries: list[RecordEntry] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    holders: dict[tuple[int, str], str] = field(default_factory=dict)

    def remaining_nodes(self, nodes: list[NodeRecord]) -> list[NodeRecord]:
        """Return the nodes that do not belong to restored groups and have to be converted."""
        return (
            [each for each in nodes if each[0] not in self.restored_positions]
            if self.restored_positions
            else nodes
        )
