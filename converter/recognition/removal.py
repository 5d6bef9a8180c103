"""Removal of the nodes that become unread when new nodes replace the matched ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from opshift.converter.folding.dead_nodes import remove_unread
from opshift.converter.recognition.candidate import Replacement
from opshift.converter.recognition.graph_view import GraphView
from opshift.model.graphs import NodeRecord


class UnreadSearch:
    """Search for what becomes unread in a graph or function if new nodes replace matched ones.

    A node can become unread if it is matched, if its results are unused and depend on matched values, or if
    it computes constants or sizes for matched nodes. Only values without readers are evaluated to find
    constants: evaluating, for example, the mask of an attention takes long.

    Attributes:
        nodes: positions of the unread nodes. Reads by subgraphs of other nodes do not count.
        sources: names of unread values that no node computes.
    """

    def __init__(self, view: GraphView, replacements: Sequence[Replacement]) -> None:
        self._view, self._scope = view, view.scope
        self._replacements = {each.position: each for each in replacements}
        self._matched = {record[0] for each in replacements for record in each.matched}
        self._moved = {name for each in replacements for name in filter(None, each.outputs[1:])}
        """Names of values that new nodes compute, and matched nodes before them."""
        self._removable = {each[0]: each for each in self._removable_nodes()}
        self._reads: dict[str, int] = {}
        """Number of inputs that read a value, for values with new or removed readers."""
        self._read_by_matched: defaultdict[int, set[str]] = defaultdict(set)
        """Names of the outputs that removed matched nodes read, by position of the producer."""
        self.nodes: set[int] = set()
        self.sources: set[str] = set()
        self._run()

    def _removable_nodes(self) -> Iterator[NodeRecord]:
        for each in self._replacements.values():
            for record in each.matched:
                if record[0] != each.position:
                    yield record
                    for name in filter(None, record[4]):
                        for reader in self._scope.readers(name):
                            yield from self._view.unread_nodes(reader) or [reader]
                elif any(each.outputs[1:]):
                    yield record

    def _run(self) -> None:
        records = self._scope.node_records
        for each in self._replacements.values():
            for name in each.read_names():
                self._reads[name] = self._read_count(name) + 1
        pending = [*self._removable.values()]
        for each in self._replacements.values():
            pending += self._unread_producers(records[each.position][3], by_matched=True)
        while pending:
            record = pending.pop()
            position = record[0]
            if position in self.nodes or self._is_read(record):
                continue
            computes_for_matched = position in self._matched or any(
                map(self._view.is_auxiliary, self._read_by_matched.get(position, ()))
            )
            if computes_for_matched or position in self._removable:
                self.nodes.add(position)
                replacement = self._replacements.get(position)
                read = record[3] if replacement is None else tuple(replacement.read_names())
                pending += self._unread_producers(read, by_matched=computes_for_matched)

    def _is_read(self, record: NodeRecord) -> bool:
        """Return whether an output of a node is read or must stay, after the replacements."""
        replacement = self._replacements.get(record[0])
        names = (
            [name for name in record[4] if name not in self._moved]
            if replacement is None
            else replacement.outputs
        )
        return any(name and (name in self._view.fixed or self._read_count(name)) for name in names)

    def _read_count(self, name: str) -> int:
        found = self._reads.get(name)
        return len(self._scope.readers(name)) if found is None else found

    def _unread_producers(self, names: Sequence[str], *, by_matched: bool) -> Iterator[NodeRecord]:
        """Count removed reads; yield the producers of values that become unread, and add to `sources`."""
        for name in filter(None, names):
            count = self._reads[name] = self._read_count(name) - 1
            record = self._view.producer(name)
            if record is not None and by_matched:
                self._read_by_matched[record[0]].add(name)
            if not count and name not in self._view.fixed:
                if record is None:
                    self.sources.add(name)
                else:
                    yield record

    def outputs(self) -> set[str]:
        """Return the names of the outputs of the unread nodes."""
        records = self._scope.node_records
        return {name for position in self.nodes for name in records[position][4] if name}

    def remove(self) -> None:
        """Remove the unread nodes and initializers, after the replacements were written."""
        container = self._scope.container
        is_unread = map(self.nodes.__contains__, range(len(container.node)))
        stays = self._scope.initializer_inputs()
        initializers = {name for name in self.sources - stays if self._is_initializer(name)}
        remove_unread(container, is_unread, self.outputs() - self._moved, initializers)

    def _is_initializer(self, name: str) -> bool:
        return (self._scope.initializer(name) or self._scope.sparse_initializer(name)) is not None
