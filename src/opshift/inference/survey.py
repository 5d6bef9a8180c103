"""Survey: one pass over all nodes that checks names and order, and finds nodes that may need conversion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field
from operator import attrgetter

from opshift.inference.facts import UNAFFECTED, OperatorStatus
from opshift.inference.scope import Scope
from opshift.model.attributes import graphs_in
from opshift.model.errors import InvalidModel
from opshift.model.graphs import MAX_LABEL, MAX_SUBGRAPH_DEPTH, NodeRecord, node_place, too_deep_error
from opshift.model.messages import NodeProto


@dataclass(repr=False, eq=False, match_args=False)  # generating each of these methods would delay the start
class ContainerSurvey:
    """Result of the survey of one graph or function."""

    path: str
    scope: Scope
    candidates: list[NodeRecord] = field(default_factory=list)
    """Records of the nodes that may need conversion, in order."""
    subgraphs: list[tuple[int, str, int, ContainerSurvey]] = field(default_factory=list)
    """For each subgraph: position of the node, attribute name, index in the attribute, and survey."""
    captured: set[str] = field(default_factory=set)
    """Names of values of enclosing graphs that this graph or a nested one reads."""

    def walk(self) -> Iterator[ContainerSurvey]:
        """Yield this survey and the surveys of all nested subgraphs."""
        yield self
        for *_, inner in self.subgraphs:
            yield from inner.walk()

    def add_candidates(self, operators: Set[tuple[str, str]]) -> None:
        """Add nodes of `operators` (domain, op_type), except function calls, here and in subgraphs."""
        found = {record[0]: record for record in self.candidates}
        # compared first: few nodes have one of these op_types, and `is_call` takes longer
        op_types = {op_type for _, op_type in operators}
        for record in self.scope.node_records:
            if record[2] in op_types and record[1:3] in operators and not self.scope.is_call(record):
                found[record[0]] = record
        self.candidates = [found[position] for position in sorted(found)]
        for *_, inner in self.subgraphs:
            inner.add_candidates(operators)


_read_fields = attrgetter("op_type", "domain", "input", "output")
"""Function that reads the fields for a NodeRecord from a NodeProto, faster than four expressions."""

NodeFields = tuple[str, str, tuple[str, ...], tuple[str, ...]]
"""The op_type, domain, inputs and outputs of a node."""


Classify = Callable[[NodeProto, Scope], OperatorStatus]
"""Function that classifies a node; its result is cached for operators of the default domain."""


def survey(
    scope: Scope,
    path: str,
    classify: Classify,
    depth: int = 0,
    *,
    keeps_records: bool = False,
    fields: Iterable[NodeFields] | None = None,
) -> ContainerSurvey:
    """Survey a graph or function and all nested subgraphs.

    `path` is the label of the graph for messages, `classify` classifies nodes, and `depth` is the number of
    enclosing graphs. With `keeps_records`, keep all node records in the scope for later inference; without
    inference, this would only waste memory. `fields` has the fields of each node if the caller has read them.

    Raises:
        InvalidModel: a value is produced twice, not produced, read before it is produced, or redefined in a
            subgraph after the subgraph read it; or a node has no op_type; or subgraphs of a node are too
            many, too deeply nested, or in two attributes with the same name.
    """
    found = ContainerSurvey(path, scope)
    known, nodes = scope.defined_names, scope.nodes
    covers, add, add_all = known.issuperset, known.add, known.update
    name_count = len(known) + len(nodes)
    statuses = scope.operator_statuses
    todo = found.candidates
    records: list[NodeRecord] = []
    producers: dict[str, NodeRecord] = {}
    interned: dict[str, str] = {}
    """Interned op_types, as in `read_node_records`."""
    # Inlines `read_node_records`: this loop takes half the time of a conversion with few changes.
    fields = map(_read_fields, nodes) if fields is None else fields
    for index, (op_type, domain, inputs, outputs) in enumerate(fields):
        inputs, outputs = inputs[:], outputs[:]
        if not covers(inputs):
            _record_captures(nodes[index], found)
        status = (None if domain else statuses.get(op_type)) or _classify(nodes[index], found, classify)
        if keeps_records or status is not UNAFFECTED:
            record = index, domain, interned.setdefault(op_type, op_type), tuple(inputs), tuple(outputs)
            if keeps_records:
                records.append(record)
                for name in outputs:
                    producers[name] = record
            if status.has_step:
                todo.append(record)
            if status.has_graphs:
                found.subgraphs += _survey_subgraphs(
                    index, nodes[index], found, classify, depth, keeps_records
                )
        if len(outputs) == 1:
            add(outputs[0])
        else:
            add_all(outputs)
            name_count += len(outputs) - 1
    if keeps_records:
        scope.node_records, scope.producing_records = records, producers
    # Search for duplicates, which is slow, only if the set has fewer names than were added to it.
    _require_valid_names(found, has_duplicates=len(known) != name_count)
    return found


def _classify(node: NodeProto, container: ContainerSurvey, classify: Classify) -> OperatorStatus:
    if not node.op_type:
        place = node_place(container.path, node)
        raise InvalidModel("has no op_type", place=place, remedy="set op_type, or remove the node")
    return classify(node, container.scope)


MAX_SUBGRAPHS = 100
"""Maximum number of graphs in an attribute; no ONNX operator has more than one."""


def _survey_subgraphs(
    index: int,
    proto: NodeProto,
    enclosing: ContainerSurvey,
    classify: Classify,
    depth: int,
    keeps_records: bool,
) -> Iterator[tuple[int, str, int, ContainerSurvey]]:
    names: set[str] = set()
    for attribute in proto.attribute:
        graphs = list(graphs_in(attribute))
        if graphs and attribute.name in names:
            place = node_place(enclosing.path, proto)
            reason = f"attribute {attribute.name!r} occurs twice"
            raise InvalidModel(reason, place=place, remedy="keep one of them")
        if len(graphs) > MAX_SUBGRAPHS:
            place = node_place(enclosing.path, proto)
            reason = f"attribute {attribute.name!r} has {len(graphs):,} graphs, more than {MAX_SUBGRAPHS}"
            raise InvalidModel(reason, place=place, remedy=f"use at most {MAX_SUBGRAPHS} graphs")
        names.add(attribute.name)
        for position, graph in enumerate(graphs):
            owner = (proto.name or proto.op_type)[:MAX_LABEL]
            path = f"{enclosing.path} / {owner}.{attribute.name}"
            if depth == MAX_SUBGRAPH_DEPTH:
                raise too_deep_error(path)
            scope = enclosing.scope.child(graph)
            scope.owner = proto
            inner = survey(scope, path, classify, depth + 1, keeps_records=keeps_records)
            enclosing.captured |= inner.captured - enclosing.scope.defined_names
            yield index, attribute.name, position, inner


def _record_captures(proto: NodeProto, found: ContainerSurvey) -> None:
    scope = found.scope
    missing = next((name for name in proto.input if not scope.is_visible(name)), None)
    if missing is None:
        found.captured.update(name for name in proto.input if name not in scope.defined_names)
        return
    place = node_place(found.path, proto)
    reason = f"input {missing!r} is not produced by any node, input or initializer"
    error = InvalidModel(reason, place=place, remedy="correct the name, add the value, or remove the node")
    if any(missing in other.output for other in scope.container.node):
        reason = f"input {missing!r} is produced by a later node: the nodes are not in order, or form a cycle"
        error = InvalidModel(reason, place=place, remedy="sort the nodes topologically")
    error.concerns_order = True
    raise error


def _require_no_duplicates(scope: Scope, path: str) -> None:
    defined = scope.predefined_names()
    for proto in scope.container.node:
        for name in filter(None, proto.output):
            if name in defined:
                place = node_place(path, proto)
                raise InvalidModel(
                    f"value {name!r} is produced twice", place=place, remedy="rename one of them"
                )
            defined.add(name)


def _require_valid_names(found: ContainerSurvey, *, has_duplicates: bool) -> None:
    scope, path = found.scope, found.path
    if has_duplicates:
        _require_no_duplicates(scope, path)
    for name in scope.outputs:
        if not scope.is_visible(name):
            reason = f"output {name!r} is not produced by any node"
            error = InvalidModel(reason, place=path, remedy="remove the output, or add the node")
            error.concerns_order = True
            raise error
    for name in found.captured:
        if name in scope.defined_names:
            reason = f"value {name!r} is read from an enclosing graph and then defined again in this graph"
            raise InvalidModel(reason, place=path, remedy="rename the inner value")
