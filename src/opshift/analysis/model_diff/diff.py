"""Comparison of two models node by node.

Connected changed nodes form one region, together with the unchanged nodes next to them.
"""

from collections import ChainMap, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import chain, islice, zip_longest
from typing import NamedTuple

import networkx

from opshift.analysis.comparison.compare import external_data_may_differ, model_with_graph
from opshift.analysis.model_diff.properties import property_changes, tensor_text, with_renames
from opshift.analysis.model_diff.result import (
    ContainerDiff,
    DiffNode,
    ModelDiff,
    NodeDifference,
    PropertyChange,
    Region,
)
from opshift.model.attributes import graphs_in
from opshift.model.errors import CannotWrite
from opshift.model.files import ModelLike, requiring_text, serialize_model
from opshift.model.graphs import (
    Container,
    ContainerProto,
    NodeRecord,
    captured_names,
    defined_values,
    graphs_of,
    is_graph,
    nested_nodes,
    node_label,
    training_graphs,
)
from opshift.model.locations import folder_of
from opshift.model.messages import ModelProto, NodeProto, TensorProto
from opshift.model.node import serialized_attributes
from opshift.model.node_key import require_utf8_names
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, function_id, function_label

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
        """Match nodes with equal operators, attributes and inputs, or equal operators and first inputs."""
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


VALUES_AND_OPERATOR = ("input", "output", "name", "op_type", "domain")
"""Fields of NodeProto that `DiffNode` contains."""

MAX_CONSTANTS = 8
"""Maximum number of initializers that a `DiffNode` lists."""


def diff_node(container: Container, position: int, *, has_constants: bool = False) -> DiffNode:
    """Describe a node; with `has_constants`, list the initializers that it reads, too."""
    record = container.node_records[position]
    domain, op_type = operator_of(record)
    tensors = ((name, container.initializer(name)) for name in record[3]) if has_constants else ()
    constants = ((name, tensor_text(tensor)) for name, tensor in tensors if tensor is not None)
    return DiffNode(
        position,
        op_type if domain == DEFAULT_DOMAIN else f"{domain}.{op_type}",
        str(container.proto_of(record).name),
        record[3],
        record[4],
        tuple(islice(constants, MAX_CONSTANTS)),
    )


def node_change(
    old: Container, before: int | None, new: Container, after: int | None, renames: Renames
) -> NodeDifference | None:
    """Return the change of a node in one or both models; `None` if the node is the same in both."""
    if before is None or after is None:
        removed = None if before is None else diff_node(old, before, has_constants=True)
        added = None if after is None else diff_node(new, after, has_constants=True)
        old_node = None if before is None else old.nodes[before]
        new_node = None if after is None else new.nodes[after]
        attributes = tuple(property_changes(old_node, new_node, VALUES_AND_OPERATOR))
        return NodeDifference("removed" if added is None else "added", removed, added, attributes)
    old_proto, new_proto = old.nodes[before], new.nodes[after]
    old_record, new_record = old.node_records[before], new.node_records[after]
    is_equal = old_proto.SerializeToString() == new_proto.SerializeToString()
    properties = [] if is_equal else list(property_changes(old_proto, new_proto, VALUES_AND_OPERATOR))
    inputs = list(_value_changes("input", old_record[3], new_record[3], renames))
    if is_equal and renames:
        # If the nodes differ, captured values are compared as inputs of the nodes in their subgraphs.
        captured = [*dict.fromkeys(chain.from_iterable(map(captured_names, graphs_of(new_proto))))]
        inputs += _value_changes("captured value", captured, captured, renames)
    if not properties and not inputs:
        is_renamed = (old_proto.name, *old_record[3:]) != (new_proto.name, *new_record[3:])
        return (
            NodeDifference("renamed", diff_node(old, before), diff_node(new, after)) if is_renamed else None
        )
    outputs = _value_changes("output", old_record[4], new_record[4], {})
    return NodeDifference(
        "changed",
        diff_node(old, before, has_constants=True),
        diff_node(new, after, has_constants=True),
        tuple(sorted((*properties, *inputs, *outputs), key=lambda each: each.is_metadata)),
    )


def _value_changes(
    side: str, old: Sequence[str], new: Sequence[str], renames: Renames
) -> Iterator[PropertyChange]:
    for position, (before, after) in enumerate(zip_longest(old, new)):
        origin = renames.get(after, after)
        if before != origin:
            texts = ["" if each is None else each or "omitted" for each in (before, after)]
            if before == after:
                texts[1] += f" (renamed from {origin})"
            yield PropertyChange(f"{side} {position}", *texts)


MAX_CONTEXT = 8
"""Maximum number of unchanged nodes in a region."""

MAX_READERS = 2
"""Maximum number of unchanged readers of one value in a region."""


def regions_of(
    changes: Sequence[NodeDifference], kept: Mapping[int, int], old: Container, new: Container
) -> Iterator[Region]:
    """Yield the regions of the changed nodes of a graph.

    `kept` maps the positions of unchanged nodes in the new graph to their positions in the old graph.
    """
    if not changes:
        return
    readers: dict[str, list[int]] = defaultdict(list)
    for position in kept:
        for name in new.node_records[position][3]:
            readers[name].append(position)
    for component in sorted(networkx.connected_components(_connection_graph(changes)), key=min):
        members = [changes[each] for each in sorted(component)]
        context = [
            NodeDifference("kept", diff_node(old, kept[each]), diff_node(new, each))
            for each in _neighbours(members, readers, new)
            if each in kept
        ]
        nodes = (*members, *context[:MAX_CONTEXT])
        yield Region(tuple(sorted(nodes, key=lambda each: each.node.position)))


def _nodes_of_change(change: NodeDifference) -> Iterator[DiffNode]:
    yield from (each for each in (change.before, change.after) if each is not None)


def _connection_graph(changes: Sequence[NodeDifference]) -> "networkx.Graph[int]":
    """Return a graph of changed nodes; edges join the producer of a name with readers and other producers."""
    connections: networkx.Graph[int] = networkx.Graph()
    connections.add_nodes_from(range(len(changes)))
    producers = {
        name: index
        for index, change in enumerate(changes)
        for node in _nodes_of_change(change)
        for name in filter(None, node.outputs)
    }
    shared: set[str] = set()
    for index, change in enumerate(changes):
        for name in (name for node in _nodes_of_change(change) for name in (*node.inputs, *node.outputs)):
            producer = producers.get(name, index)
            # A producer without inputs, such as Constant, joins only one reader, because its readers are
            # unrelated.
            if changes[producer].node.inputs or name not in shared:
                connections.add_edge(producer, index)
            if producer != index:
                shared.add(name)
    return connections


def _neighbours(
    members: Sequence[NodeDifference], readers: Mapping[str, Sequence[int]], new: Container
) -> dict[int, None]:
    """Return positions in the new graph: producers of inputs, and some readers of outputs, of `members`."""
    found: dict[int, None] = {}
    for node in (node for change in members for node in _nodes_of_change(change)):
        producers = (new.producing_records[name] for name in node.inputs if name in new.producing_records)
        found.update(dict.fromkeys(record[0] for record in producers))
        for name in node.outputs:
            found.update(dict.fromkeys(readers.get(name, ())[:MAX_READERS]))
    return found


class ContainerPair(NamedTuple):
    """Graph or function in both models, and its renamed values: new name to old name."""

    place: str
    old: ContainerProto
    new: ContainerProto
    renames: Renames


@requiring_text
def diff_model(old: ModelLike, new: ModelLike) -> ModelDiff:
    """Compare two models node by node.

    Nodes match if they have the same operator and one of these: a common output, equal attributes and inputs,
    the same first input, or the same name. A different order of nodes counts as one property of the graph,
    because it does not affect results. External data files are compared if both models are paths.

    Args:
        old: a ModelProto of opshift or `onnx`, serialized bytes, or a path.
        new: a model in one of the same forms.

    Returns:
        All differences: `print` shows a summary, and `write_report` writes a page.

    Raises:
        InvalidModel: `old` or `new` is not a model with a graph, or has names that are not UTF-8.
    """
    before, after = model_with_graph(old), model_with_graph(new)
    containers, kept = _compare_models(before, after)
    if external_data_may_differ(before, after, (folder_of(old), folder_of(new))):
        change = PropertyChange(
            "external data files", "", "different, or not compared: both models must be files"
        )
        containers.append(ContainerDiff("model", (change,)))
    with suppress(CannotWrite):  # a model larger than 2 GiB cannot be serialized
        if not containers and serialize_model(before) != serialize_model(after):
            change = PropertyChange("encoding", "", "same content, different serialization or unknown fields")
            containers.append(ContainerDiff("model", (change,)))
    return ModelDiff(tuple(containers), kept)


def _compare_models(old: ModelProto, new: ModelProto) -> tuple[list[ContainerDiff], int]:
    """Return the differences of the model, its graphs and its functions, and the number of equal nodes."""
    found = [ContainerDiff("model", tuple(property_changes(old, new, ("graph",))))]
    kept = 0
    pending = _root_pairs(old, new)[::-1]
    while pending:
        pair = pending.pop()
        difference, same, subgraphs = _compare_containers(pair)
        found.append(difference)
        kept += same
        pending += subgraphs[::-1]
    return [each for each in found if each.properties or each.regions or each.renamed], kept


def _root_pairs(old: ModelProto, new: ModelProto) -> list[ContainerPair]:
    """Return the main graph, and the functions and training graphs that both models have."""
    functions = [{function_id(each): each for each in model.functions} for model in (old, new)]
    training = [{each.path: each.graph for each in training_graphs(model)} for model in (old, new)]
    return [
        ContainerPair("graph", old.graph, new.graph, {}),
        *(
            ContainerPair(f"function {function_label(each)}", each, functions[1][name], {})
            for name, each in functions[0].items()
            if name in functions[1]
        ),
        *(
            ContainerPair(path, each, training[1][path], {})
            for path, each in training[0].items()
            if path in training[1]
        ),
    ]


def _compare_containers(pair: ContainerPair) -> tuple[ContainerDiff, int, list[ContainerPair]]:
    """Return the differences of a graph or function, its number of equal nodes, and subgraphs to compare."""
    old, new = Container(pair.old), Container(pair.new)
    for container in (old, new):
        require_utf8_names(
            name for each in container.node_records for name in (*each[1:3], *each[3], *each[4])
        )
    positions = NodeMatcher(old, new, pair.renames).positions
    changes: list[NodeDifference] = []
    kept: dict[int, int] = {}
    subgraphs: list[ContainerPair] = []
    count = 0
    for after, proto in enumerate(pair.new.node):
        before = positions.get(after)
        change = node_change(old, before, new, after, pair.renames)
        if change is not None:
            changes.append(change)
        if before is not None and (change is None or change.status == "renamed"):
            kept[after] = before
        if change is None:
            count += 1 + sum(1 for _ in nested_nodes(*graphs_of(proto)))
        elif before is not None:
            subgraphs += _subgraphs(pair, pair.old.node[before], proto)
    matched = set(positions.values())
    for before in range(len(pair.old.node)):
        change = node_change(old, before, new, None, pair.renames) if before not in matched else None
        if change is not None:
            changes.append(change)
    properties = with_renames(property_changes(pair.old, pair.new, ("node",)), pair.renames)
    # report outputs that keep their name, but get the value of another one; added, removed and reordered
    # outputs are differences of the field `output`
    known = {*old.outputs}
    outputs = [name if name in known else "" for name in new.outputs]
    properties += _value_changes("value of output", outputs, outputs, pair.renames)
    order = [positions[each] for each in sorted(positions)]
    if order != sorted(order):
        properties.append(PropertyChange("order of nodes", "", "differs"))
    regions = regions_of([each for each in changes if each.status != "renamed"], kept, old, new)
    renamed = tuple(each for each in changes if each.status == "renamed")
    return ContainerDiff(pair.place, tuple(properties), tuple(regions), renamed), count, subgraphs


def _subgraphs(pair: ContainerPair, old: NodeProto, new: NodeProto) -> Iterator[ContainerPair]:
    """Yield the pairs of subgraphs in attributes that two nodes have in common."""
    attributes = {each.name: each for each in old.attribute}
    label = node_label(new.name, new.op_type, new.output)
    for each in new.attribute:
        if each.name in attributes:
            graphs = zip(graphs_in(attributes[each.name]), graphs_in(each), strict=False)
            for position, (before, after) in enumerate(graphs):
                place = f"{pair.place}, {label} {each.name}{f'[{position}]' if each.graphs else ''}"
                # Values of the subgraph may have, and then hide, names of renamed values of the outer graph.
                renames: Renames = {}
                if pair.renames:
                    own = {name: name for name in pair.renames.keys() & {*defined_values(after)}}
                    renames = ChainMap(own, pair.renames)
                yield ContainerPair(place, before, after, renames)
