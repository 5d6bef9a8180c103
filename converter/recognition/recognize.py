"""Recognition of operators in a model: one node of an operator replaces nodes that compute its results.

Each pass visits the nodes of a graph from last to first, because the last node of a pattern computes its
result. Names of graph inputs and outputs do not change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.converter.folding.dead_nodes import RemovalRules, fixed_names, remove_dead_nodes, remove_unread
from opshift.converter.options import Options
from opshift.converter.plan.changes import METADATA_KEY
from opshift.converter.recognition.candidate import Candidate, Rejected, Replacement
from opshift.converter.recognition.expansion_cache import Expansions
from opshift.converter.recognition.graph_view import GraphView
from opshift.converter.recognition.matching import Matcher
from opshift.converter.recognition.patterns import Pattern
from opshift.converter.recognition.result import NearMiss, Recognition, RecognizedNode
from opshift.converter.recognition.search import PatternIndex, PatternSearch, pattern_index
from opshift.inference.function_scope import CallScope
from opshift.inference.root_scopes import add_call_facts, root_scopes
from opshift.model.attributes import ATTRIBUTE_TYPES, write_attribute
from opshift.model.errors import CannotConvert
from opshift.model.graphs import (
    NodeRecord,
    graphs_of,
    is_graph,
    nested_containers,
    node_place,
    remove_messages,
)
from opshift.model.indirect_reads import names_read_indirectly
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, model_domain
from opshift.model.tensors import write_tensor
from opshift.registry.models import OperatorVersion
from opshift.rewriting.workspace import FreshNames

_domain_and_op_type = itemgetter(1, 2)
"""Function that returns the domain and the op_type in a NodeRecord."""

MAX_PASSES = 3
"""Maximum number of passes: recognized nodes may be parts of the pattern of a larger operator."""


def recognize(model: ModelProto, options: Options) -> Recognition:
    """Recognize operators in a converted model: replace nodes in place, and return a summary.

    A model with a graph or function that defines a name twice stays unchanged.
    """
    one_pass = _RecognitionPass(model, options)
    before, op_types = one_pass.node_count, one_pass.op_types
    if not one_pass.has_distinct_names:
        return Recognition(node_counts=(before, before))
    index = pattern_index(model, options, op_types, None)
    found: list[RecognizedNode] = []
    misses: dict[tuple[str, str], NearMiss] = {}
    for number in range(MAX_PASSES):
        if not index.groups:
            break
        if number:
            one_pass = _RecognitionPass(model, options)
        one_pass.run(index)
        found += one_pass.found
        for miss in one_pass.misses:
            misses.setdefault((miss.place, miss.operator), miss)
        wanted = {each.operator.name for each in one_pass.replacements}
        op_types |= wanted
        index = pattern_index(model, options, op_types, wanted)
    recognized = {each.place for each in found}
    is_recorded = bool(found) and any(each.key == METADATA_KEY for each in model.metadata_props)
    if is_recorded:
        remove_messages(model.metadata_props, [each.key == METADATA_KEY for each in model.metadata_props])
    kept = tuple(each for each in misses.values() if each.place not in recognized)
    after = one_pass.count_nodes()
    return Recognition(tuple(found), kept, (before, after), is_recorded)


class _Located(NamedTuple):
    """View of a graph, subgraph or function, and the replacements to write into it."""

    view: GraphView
    replacements: Sequence[Replacement]


class _RecognitionPass:
    """One pass over a model.

    Attributes:
        op_types: names of the operators of all nodes, without their domains.
        node_count: number of nodes, also in subgraphs and functions.
        has_distinct_names: whether each graph, subgraph and function defines a name at most once.
        found, misses, replacements: results of `run`.
    """

    def __init__(self, model: ModelProto, options: Options) -> None:
        self._model, self._options = model, options
        self._expansions = Expansions(options.registry, options.allow)
        self._fixed = names_read_indirectly(model)
        self.found: list[RecognizedNode] = []
        self.misses: list[NearMiss] = []
        self.replacements: list[Replacement] = []
        self.op_types: set[str] = set()
        self.node_count = 0
        self.has_distinct_names = True
        self._scopes = [*root_scopes(model, model, options.registry)]
        for scope, _, _ in self._scopes:
            # Zero sizes need no check: the matched values are then empty, and cannot differ.
            scope.evaluation.assumes_positive_sizes = True
            scope.evaluation.names_sizes = True
        self._views = [self._graph_view(scope) for scope, _, _ in self._scopes]

    def _graph_view(self, scope: CallScope) -> GraphView:
        """Return the view of a graph or function and its subgraphs, and add their nodes to the attributes.

        Node outputs are added to `defined_names` of their scopes.
        """
        records, names = scope.node_records, scope.defined_names
        outputs = [name for record in records for name in record[4] if name]
        operators = set(map(_domain_and_op_type, records))
        self.op_types.update(op_type for _, op_type in operators)
        self.node_count += len(records)
        expected = len(names) + len(outputs)
        names.update(outputs)
        self.has_distinct_names &= len(names) == expected
        view = GraphView(scope, frozenset(fixed_names(scope.container) | (self._fixed & names)))
        nesting = {each for each in operators if _may_hold_graphs(scope.operator(each[1], each[0]))}
        for record in records if nesting else ():
            if record[1:3] in nesting:
                node = scope.proto_of(record)
                for graph in graphs_of(node):
                    child = scope.child(graph)
                    child.owner = node
                    view.children.setdefault(record[0], []).append(self._graph_view(child))
        return view

    def count_nodes(self) -> int:
        """Return the current number of nodes, also in subgraphs and functions."""
        # Only views with children need a visit of all nodes to find those in subgraphs.
        groups = (
            nested_containers([each.scope.container]) if each.children else [each.scope.container]
            for each in self._views
        )
        return sum(len(each.node) for each in chain.from_iterable(groups))

    def run(self, index: PatternIndex) -> None:
        if self._model.functions:
            add_call_facts([scope for scope, _, _ in self._scopes])
        located: list[tuple[GraphView, list[_Located]]] = []
        for view, (_, _, path) in zip(self._views, self._scopes, strict=True):
            found = list(self._find_replacements(view, path, index))
            if found:
                located.append((view, found))
        names = FreshNames()
        names.sources += [scope.used_names for scope, _, _ in self._scopes]
        for root, graphs in located:
            _write_replacements(root, graphs, names, self._fixed)

    def _find_replacements(self, view: GraphView, path: str, index: PatternIndex) -> Iterator[_Located]:
        scope, search = view.scope, PatternSearch(index, view)
        op_types = index.groups.keys()
        taken: set[int] = set()
        found: list[Replacement] = []
        for record in reversed(scope.node_records):
            if record[2] not in op_types or record[0] in taken or record[1] not in ("", DEFAULT_DOMAIN):
                continue
            for pattern in search.candidates(record):
                replacement = self._replacement_at(pattern, record, view, path)
                if replacement is not None and taken.isdisjoint(each[0] for each in replacement.nodes):
                    taken.update(each[0] for each in replacement.nodes)
                    found.append(replacement)
                    place = node_place(path, scope.proto_of(record))
                    self.found.append(
                        RecognizedNode(
                            place,
                            str(replacement.operator.id),
                            len(replacement.nodes),
                            replacement.approximate,
                        )
                    )
                    break
        self.replacements += found
        if found:
            yield _Located(view, found)
        for position, children in view.children.items():
            # Skip the subgraphs of a node that a new node replaces, such as a Loop.
            if position not in taken:
                place = node_place(path, scope.nodes[position])
                for child in children:
                    yield from self._find_replacements(child, place, index)

    def _replacement_at(
        self, pattern: Pattern, record: tuple[int, str, str, tuple[str, ...], tuple[str, ...]],
        view: GraphView, path: str,
    ) -> Replacement | None:  # fmt: skip
        operator = self._operator_of(pattern, view)
        position = pattern.outputs[0].output
        if operator is None or position >= len(record[4]):
            return None
        if pattern.flattened and self._model.ir_version < FIRST_IR_WITH_STANDALONE_INITIALIZERS:
            return None
        matcher = Matcher(
            view,
            pattern.nodes,
            pattern.outputs,
            operator,
            is_complete=pattern.is_form,
            is_close=bool(pattern.approximate),
        )
        try:
            match = matcher.match(record[4][position])
            if match is None:
                return None
            if pattern.approximate and "approximate" not in self._options.allow:
                raise Rejected(f"{pattern.approximate}; allow=approximate accepts it")
            candidate = Candidate(pattern, operator, record, view, self._expansions)
            found = candidate.replacement(match, is_relaxed=matcher.is_relaxed)
        except (Rejected, CannotConvert) as error:
            place = node_place(path, view.scope.proto_of(record))
            self.misses.append(NearMiss(place, str(operator.id), str(error)))
            return None
        return found

    def _operator_of(self, pattern: Pattern, view: GraphView) -> OperatorVersion | None:
        """Return the operator version at the graph's opset; `None` if the graph or the pattern lacks it."""
        found = view.scope.operator(pattern.operator, model_domain(pattern.domain))
        if found and pattern.versions and found.since_version not in pattern.versions:
            return None
        return found


def _may_hold_graphs(operator: OperatorVersion | None) -> bool:
    return operator is None or operator.holds_graphs


def _write_replacements(
    root: GraphView, graphs: Sequence[_Located], names: FreshNames, fixed: Set[str]
) -> None:
    """Write replacements into a graph or function and its subgraphs, and remove unread nodes."""
    searches = [UnreadSearch(*each) for each in graphs]
    removable: set[str] = set()
    for view, replacements in graphs:
        container = view.scope.container
        nodes = container.node
        for each in replacements:
            _fill_node(nodes[each.position], each, names)
            removable |= _rename_outputs(nodes, each, names)
            for position, value in each.flattened.items():
                name = nodes[each.position].input[position] = names.fresh(each.inputs[position])
                assert is_graph(container)
                write_tensor(container.initializer.add(), value, name)
    if not root.children:
        searches[0].remove()
        return
    for search in searches:
        removable |= search.outputs()
    scopes = [each.scope for each in root.nested()]
    read = {name for scope in scopes for record in scope.node_records for name in record[3]}
    initializers = set().union(*(scope.predefined_names() for scope in scopes))
    defined = set().union(*(scope.defined_names for scope in scopes))
    kept = (initializers - read) | (fixed & defined)  # initializers that were unread before stay
    removal = RemovalRules(lambda node: any(map(removable.__contains__, node.output)), named=kept)
    remove_dead_nodes(root.scope.container, removal)


def _rename_outputs(nodes: Sequence[NodeProto], replacement: Replacement, names: FreshNames) -> set[str]:
    """Rename outputs of replaced nodes that the new node computes, and return the new names."""
    renamed: set[str] = set()
    for record in replacement.nodes:
        for index, name in enumerate(record[4]) if record[0] != replacement.position else ():
            if name and name in replacement.outputs:
                nodes[record[0]].output[index] = names.fresh(name)
                renamed.add(nodes[record[0]].output[index])
    return renamed


def _fill_node(proto: NodeProto, replacement: Replacement, names: FreshNames) -> None:
    """Turn a node into the replacement; its name, doc string and metadata stay.

    Required outputs of the operator that the model does not compute get new names.
    """
    operator = replacement.operator
    proto.op_type = operator.name
    proto.domain = model_domain(operator.domain)
    proto.input[:] = replacement.inputs
    proto.output[:] = [
        name or (names.fresh("unread") if position < operator.min_output else "")
        for position, name in enumerate(replacement.outputs)
    ]
    del proto.attribute[:]
    for name, value in replacement.attributes.items():
        kind = ATTRIBUTE_TYPES[operator.attributes[name].type]
        write_attribute(proto.attribute.add(), name, kind, value)


class UnreadSearch:
    """Search for the nodes and values that become unread in a graph or function if new nodes replace others.

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
        """Names of values that matched nodes compute before the replacement, and new nodes afterwards."""
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
        """Subtract one read from each value; yield the producers of values that become unread.

        Unread values without a producer are added to `sources`. `by_matched` states whether the removed
        reader is a matched node, not another unread node.
        """
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
