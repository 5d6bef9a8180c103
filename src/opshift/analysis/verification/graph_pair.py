"""Graph of a model and its conversion, with the values of both for the same inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from opshift.analysis.verification.compare import compare_output
from opshift.analysis.verification.executable_graph import ExecutableGraph
from opshift.analysis.verification.inputs import Feeds
from opshift.analysis.verification.numpy_types import array_element_type
from opshift.analysis.verification.result import OutputCompared
from opshift.model.graphs import node_place
from opshift.model.progress import Progress


class GraphPair(NamedTuple):
    """Graph of the original and its conversion, and the inputs of both.

    Attributes:
        original, converted, feeds: the graphs and their inputs.
        path: the path of the original graph for messages.
        progress: progress of the search.
        enclosing: labels of the nodes that execute the graph, outermost first.
        outer: the node that executes the graph.
    """

    original: ExecutableGraph
    converted: ExecutableGraph
    feeds: tuple[Feeds, Feeds]
    path: str
    progress: Progress
    enclosing: tuple[str, ...] = ()
    outer: DifferentNode | None = None

    def values(self, names: Sequence[str]) -> Iterator[tuple[str, object, object]]:
        """Yield values with their names."""
        original, converted = (
            graph.values(names, feeds) for graph, feeds in zip(self[:2], self.feeds, strict=True)
        )
        for name in names:
            yield name, original[name], converted[name]

    def place(self, position: int) -> str:
        """Return the label of a node of the original."""
        return node_place(self.path, self.original.nodes[position])


class DifferentNode(NamedTuple):
    """Node with a different value.

    Attributes:
        pair: the graph of the node.
        position: position of the node in the original.
        value: comparison of the value.
        smaller: comparisons of earlier values in the graph with differences within the tolerance.
    """

    pair: GraphPair
    position: int
    value: OutputCompared
    smaller: tuple[OutputCompared, ...] = ()

    @property
    def place(self) -> str:
        """Label of the node."""
        return self.pair.place(self.position)


def compare_values(
    name: str, original: object, converted: object, tolerance: float | None
) -> OutputCompared | None:
    """Compare two values; return `None` if they are equal, or if their types cannot be compared.

    A conversion may compute inner values in a different type.
    """
    if isinstance(original, np.ndarray) and isinstance(converted, np.ndarray):
        if np.array_equal(original, converted):  # the usual case, in a tenth of the time of the comparison
            return None
        kinds = {original.dtype.kind, converted.dtype.kind}
        if kinds <= {"i", "u"} or kinds == {"f"}:
            converted = converted.astype(original.dtype)
        elif array_element_type(original) != array_element_type(converted):
            return None
    elif type(original) is not type(converted):
        return None
    return compare_output(name, [original], [converted], tolerance)
