"""Match the nodes of two graphs or functions.

Nodes match if they have the same operator and one of these, which are tried in this order: a common output,
equal attributes and inputs, the same first input, or the same name.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, MutableMapping
from hashlib import sha256

from opshift.model.graphs import Container, NodeRecord, is_graph
from opshift.model.messages import TensorProto
from opshift.model.node import serialized_attributes
from opshift.model.operator_ids import canonical_domain

Renames = MutableMapping[str, str]
"""Old name of each renamed value, by its new name."""


def operator_of(record: NodeRecord) -> tuple[str, str]:
    """Return domain and name of a node's operator."""
    return canonical_domain(record[1]), record[2]


class NodeMatcher:
    """Matches of the nodes of two graphs or functions.

    Attributes:
        positions: position of each matched node in the old graph, by its position in the new graph.
        renames: old names by new names; matching adds renamed inputs, initializers and outputs.
    """

    def __init__(self, old: Container, new: Container, renames: Renames) -> None:
        self.positions: dict[int, int] = {}
        self.renames = renames
        self._old, self._new = old, new
        self._taken: set[int] = set()
        self._match_inputs()
        self._match_initializers()
        self._match_outputs()
        self._match_computations()
        self._match_names()

    def _add_match(self, record: NodeRecord, found: NodeRecord | None) -> None:
        if found and found[0] not in self._taken and operator_of(found) == operator_of(record):
            self.positions[record[0]] = found[0]
            self._taken.add(found[0])

    def _add_renames(self, old: Iterable[str], new: Iterable[str]) -> None:
        for before, after in zip(old, new, strict=False):
            if before and after and before != after:
                self.renames[after] = before

    def _match_inputs(self) -> None:
        """Match inputs with new names by position."""
        before, after = (
            dict.fromkeys(map(_input_name, one.container.input)) for one in (self._old, self._new)
        )
        removed = [each for each in before if each not in after]
        added = [each for each in after if each not in before]
        if len(removed) == len(added):
            self._add_renames(removed, added)

    def _match_initializers(self) -> None:
        """Match initializers with new names by content."""
        contents: dict[bytes, deque[str]] = defaultdict(deque)
        for tensor in _tensors_missing_in(self._new, self._old):
            contents[_tensor_digest(tensor)].append(tensor.name)
        for tensor in _tensors_missing_in(self._old, self._new):
            found = contents.get(_tensor_digest(tensor))
            if found:
                self.renames[tensor.name] = found.popleft()

    def _match_outputs(self) -> None:
        for record in self._new.node_records:
            for output in filter(None, record[4]):
                if record[0] not in self.positions:
                    self._add_match(record, self._old.producing_records.get(output))

    def _match_computations(self) -> None:
        """Match nodes with the same operator, and the same attributes and inputs or the same first input."""
        candidates: dict[object, deque[NodeRecord]] = defaultdict(deque)
        for found in self._old.node_records:
            if found[0] not in self._taken:
                for key in _computation_keys(self._old, found, found[3]):
                    candidates[key].append(found)
        # in the order of the nodes, because renamed outputs of earlier nodes help to match later nodes
        for record in self._new.node_records:
            inputs = tuple(self.renames.get(name, name) for name in record[3])
            for key in _computation_keys(self._new, record, inputs):
                same = candidates.get(key)
                while same and record[0] not in self.positions:
                    self._add_match(record, same.popleft())
            if record[0] in self.positions:
                found = self._old.node_records[self.positions[record[0]]]
                self._add_renames(found[4], record[4])

    def _match_names(self) -> None:
        # if several nodes have the same name, the first one is matched
        records = reversed(self._old.node_records)
        names = {self._old.proto_of(each).name: each for each in records if each[0] not in self._taken}
        for record in self._new.node_records:
            name = self._new.proto_of(record).name if record[0] not in self.positions else ""
            if name:
                self._add_match(record, names.get(name))


def _input_name(value: object) -> str:
    """Return the name of an input, which is a ValueInfoProto in a graph and a string in a function."""
    return str(getattr(value, "name", value))


def _computation_keys(container: Container, record: NodeRecord, inputs: tuple[str, ...]) -> Iterator[object]:
    yield operator_of(record), inputs, tuple(serialized_attributes(container.proto_of(record)))
    if any(inputs[:1]):
        yield operator_of(record), inputs[0]


def _tensors_missing_in(other: Container, one: Container) -> Iterator[TensorProto]:
    if is_graph(one.container):
        yield from (each for each in one.container.initializer if other.initializer(each.name) is None)


def _tensor_digest(tensor: TensorProto) -> bytes:
    unnamed = type(tensor).FromString(tensor.SerializeToString())
    unnamed.ClearField("name")
    return sha256(unnamed.SerializeToString(deterministic=True)).digest()
