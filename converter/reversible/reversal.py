"""What the record means for the plan of one graph or function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from opshift.adapters.node import Node
from opshift.converter.rewrite import Rewritten

if TYPE_CHECKING:
    from opshift.converter.lines import Line
    from opshift.converter.reversible.groups import Group
    from opshift.converter.reversible.record import Entry


class Return(NamedTuple):
    """A node that is put back for its group and, where the target differs from its opset, converted on.

    Attributes:
        group: the nodes that go.
        operators: what they are, in order.
        node: what is put back.
        result: what that is at the target.
    """

    group: Group
    operators: tuple[str, ...]
    node: Node
    result: Rewritten

    @property
    def is_whole(self) -> bool:
        """Whether the node itself is what comes back."""
        return len(self.result.nodes) == 1 and self.result.nodes[0].node is self.node

    @property
    def changes_nothing(self) -> bool:
        """Whether the node is there already."""
        return self.is_whole and self.group.is_original


@dataclass
class Reversal:
    """What is put back in one graph or function, and what it remembers from then on.

    Attributes:
        returns: what is put back, by position.
        carried: groups that go on standing for their originals.
        removed: positions of nodes that go.
        dropped: names of constants and inner values that go.
        settled: positions of the nodes that are taken for what they were.
        entries: what the converted model remembers, but for the digests.
        constants: names of the constants that conversions added, and that may be there still.
        holders: by the position of a node that holds graphs, and the attribute, the first output of the node
            that holds them then.
    """

    returns: dict[int, Return] = field(default_factory=dict)
    carried: list[Group] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    settled: set[int] = field(default_factory=set)
    entries: list[Entry] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    holders: dict[tuple[int, str], str] = field(default_factory=dict)

    def unsettled(self, nodes: list[Line]) -> list[Line]:
        """The nodes that are to be converted as they are."""
        return [each for each in nodes if each[0] not in self.settled] if self.settled else nodes
