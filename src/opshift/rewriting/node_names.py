"""Unique names for added nodes: onnxruntime refuses a graph in which two nodes have the same name."""

from collections.abc import Iterable

from opshift.model.messages import NodeProto
from opshift.rewriting.workspace import FreshNames


class NodeNames:
    """Names of the nodes of one graph, which copies of other nodes must not repeat."""

    def __init__(self, nodes: Iterable[NodeProto]) -> None:
        self._names = FreshNames()
        self._names.sources.append(lambda: [{node.name for node in nodes}])

    def rename(self, copies: Iterable[NodeProto], kept: str = "") -> None:
        """Give unique names to added nodes that have a name; a node with the name `kept` keeps it."""
        for node in copies:
            if node.name and node.name != kept:
                node.name = self._names.fresh(node.name)
