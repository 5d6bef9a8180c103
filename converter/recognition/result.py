"""Result of recognition: nodes that replaced others, and patterns that almost matched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from opshift.model.message_text import count_text
from opshift.model.shared_data import FrozenRecord


class RecognizedNode(FrozenRecord):
    """Node that replaced others.

    Attributes:
        place: label of the node, with its graph or function.
        operator: operator version of the node, such as `ai.onnx.Gelu:20`.
        nodes: number of nodes that it replaced.
        rounding: sentence about the difference in rounding; empty if the results are equal.
    """

    place: str
    operator: str
    nodes: int
    rounding: str = ""


class NearMiss(FrozenRecord):
    """Nodes that match a pattern, but are kept.

    Attributes:
        place: label of the last node.
        operator: operator version of the pattern.
        reason: sentence about why the nodes are kept.
    """

    place: str
    operator: str
    reason: str


class Recognition(FrozenRecord):
    """Result of recognition in a model."""

    nodes: tuple[RecognizedNode, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()
    node_counts: tuple[int, int] = (0, 0)
    """Number of nodes of the model before and after recognition."""
    removed_record: bool = False
    """Whether the record of a reversible conversion was removed: its nodes may read removed values."""

    def groups(self) -> list[tuple[str, int, int]]:
        """Return tuples of an operator, the number of its new nodes and the number of replaced nodes."""
        counts = Counter(each.operator for each in self.nodes)
        replaced: Counter[str] = Counter()
        for each in self.nodes:
            replaced[each.operator] += each.nodes
        return [(operator, count, replaced[operator]) for operator, count in counts.most_common()]

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each operator, such as `12 x ai.onnx.Gelu:20 from 60 nodes`."""
        for operator, count, replaced in self.groups():
            yield f"{count:,} x {operator} from {count_text(replaced, 'node')}"
