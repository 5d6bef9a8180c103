"""Recognition of operators in a model: one node of an operator replaces nodes that compute its results.

Each pass visits the nodes of a graph from last to first, because the last node of a pattern computes its
result. Names of graph inputs and outputs do not change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import reduce
from operator import itemgetter, or_
from typing import NamedTuple

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.converter.folding.dead_nodes import RemovalRules, fixed_names, remove_dead_nodes
from opshift.converter.options import EVERY_OPERATOR, Options
from opshift.converter.plan.changes import METADATA_KEY
from opshift.converter.recognition.candidate import Candidate, Rejected, Replacement
from opshift.converter.recognition.expansion_cache import Expansions
from opshift.converter.recognition.graph_view import GraphView
from opshift.converter.recognition.load import operator_names, pattern_groups
from opshift.converter.recognition.matching import Matcher, candidates
from opshift.converter.recognition.pattern_groups import PatternGroup, operator_bit
from opshift.converter.recognition.patterns import Pattern
from opshift.converter.recognition.result import NearMiss, Recognition, RecognizedNode
from opshift.inference.function_scope import CallScope
from opshift.inference.root_scopes import add_call_facts, root_scopes
from opshift.model.attributes import ATTRIBUTE_TYPES, write_attribute
from opshift.model.errors import CannotConvert
from opshift.model.graphs import (
    ContainerProto,
    count_model_nodes,
    graphs_of,
    is_graph,
    node_place,
    remove_messages,
)
from opshift.model.indirect_reads import names_read_indirectly
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, model_domain
from opshift.model.tensors import write_tensor
from opshift.registry.models import OperatorVersion
from opshift.rewriting.workspace import FreshNames

_domain_and_op_type = itemgetter(1, 2)
"""Function that returns the domain and the op_type in a NodeRecord."""

MAX_PASSES = 3
"""Maximum number of passes: recognized nodes may be parts of the pattern of a larger operator."""


def recognize(model: ModelProto, options: Options) -> Recognition:
    """Recognize operators in a converted model: replace nodes in place, and return a summary.

    A model in which several values have the same name stays unchanged.
    """
    one_pass = _RecognitionPass(model, options)
    before, op_types = one_pass.node_count, one_pass.op_types
    if not one_pass.has_distinct_names:
        return Recognition(node_counts=(before, before))
    anchors = _groups_by_last_op(model, options, op_types, None)
    found: list[RecognizedNode] = []
    misses: dict[tuple[str, str], NearMiss] = {}
    for number in range(MAX_PASSES):
        if not anchors:
            break
        if number:
            one_pass = _RecognitionPass(model, options)
        one_pass.run(anchors)
        found += one_pass.found
        for miss in one_pass.misses:
            misses.setdefault((miss.place, miss.operator), miss)
        wanted = {each.operator.name for each in one_pass.replacements}
        op_types |= wanted
        anchors = _groups_by_last_op(model, options, op_types, wanted)
    recognized = {each.place for each in found}
    is_recorded = bool(found) and any(each.key == METADATA_KEY for each in model.metadata_props)
    if is_recorded:
        remove_messages(model.metadata_props, [each.key == METADATA_KEY for each in model.metadata_props])
    kept = tuple(each for each in misses.values() if each.place not in recognized)
    after = count_model_nodes(model) if found else before
    return Recognition(tuple(found), kept, (before, after), is_recorded)


def _groups_by_last_op(
    model: ModelProto, options: Options, op_types: Set[str], wanted: Set[str] | None
) -> Mapping[str, Sequence[PatternGroup]]:
    """Return the groups of patterns whose operators are all in `op_types`, by op_type of the last node.

    A pattern must contain an operator of `wanted`, unless `wanted` is `None`.
    """
    found: defaultdict[str, list[PatternGroup]] = defaultdict(list)
    if wanted is not None and not wanted:
        return found
    absent = ~reduce(or_, map(operator_bit, op_types), 0)
    for group in _requested_groups(model, options):
        # A comparison of bits excludes most groups in less time than a comparison of sets.
        is_possible = not group.near_operators & absent and group.op_types <= op_types
        if is_possible and (wanted is None or not group.op_types.isdisjoint(wanted)):
            found[group.near.op_type].append(group)
    return found


def _requested_groups(model: ModelProto, options: Options) -> Iterator[PatternGroup]:
    """Yield the patterns of the requested operators that exist at the model's opsets."""
    registry, requested = options.registry, options.recognize
    shadowed = {(canonical_domain(each.domain), each.name) for each in model.functions}
    imports = [*model.opset_import, *(i for each in model.functions for i in each.opset_import)]
    newest: defaultdict[str, int] = defaultdict(int)
    for each in imports:
        domain = canonical_domain(each.domain)
        newest[domain] = max(newest[domain], each.version)
    names = operator_names(registry) if EVERY_OPERATOR in requested else ()
    for name in (*(f"{DEFAULT_DOMAIN}.{each}" for each in names), *requested - {EVERY_OPERATOR}):
        domain, _, op_type = name.rpartition(".")
        operator = registry.operator(op_type, domain)
        exists = operator is not None and operator.versions[0].since_version <= newest[domain]
        if exists and name not in options.without and (domain, op_type) not in shadowed:
            yield from pattern_groups(op_type, domain, registry)


class _Located(NamedTuple):
    """Graph, subgraph or function, and the replacements to write into it."""

    container: ContainerProto
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
            # Zero sizes are safe: the matched values are then empty, and have no elements that could differ.
            scope.evaluation.assumes_positive_sizes = True
            scope.evaluation.names_sizes = True
        self._views = [self._graph_view(scope) for scope, _, _ in self._scopes]

    def _graph_view(self, scope: CallScope) -> GraphView:
        """Return the view of a graph or function and its subgraphs, and declare the values of its nodes."""
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

    def run(self, anchors: Mapping[str, Sequence[PatternGroup]]) -> None:
        """Find and write all replacements."""
        if self._model.functions:
            add_call_facts([scope for scope, _, _ in self._scopes])
        located: list[tuple[GraphView, list[_Located]]] = []
        for view, (_, _, path) in zip(self._views, self._scopes, strict=True):
            found = list(self._find_replacements(view, path, anchors))
            if found:
                located.append((view, found))
        names = FreshNames()
        names.sources += [scope.used_names for scope, _, _ in self._scopes]
        for root, graphs in located:
            _write_replacements(root, graphs, names, self._fixed)

    def _find_replacements(
        self, view: GraphView, path: str, anchors: Mapping[str, Sequence[PatternGroup]]
    ) -> Iterator[_Located]:
        scope = view.scope
        taken: set[int] = set()
        found: list[Replacement] = []
        for record in reversed(scope.node_records):
            if record[2] not in anchors or record[0] in taken or record[1] not in ("", DEFAULT_DOMAIN):
                continue
            for pattern in candidates(anchors[record[2]], record, view):
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
            yield _Located(scope.container, found)
        for position, children in view.children.items():
            # Skip the subgraphs of a node that a new node replaces, such as a Loop.
            if position not in taken:
                place = node_place(path, scope.nodes[position])
                for child in children:
                    yield from self._find_replacements(child, place, anchors)

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
        """Return the operator version at the graph's opset; `None` if the pattern is for other versions."""
        found = view.scope.operator(pattern.operator, model_domain(pattern.domain))
        if found and pattern.versions and found.since_version not in pattern.versions:
            return None
        return found


def _may_hold_graphs(operator: OperatorVersion | None) -> bool:
    return operator is None or operator.holds_graphs


def _write_replacements(
    root: GraphView, graphs: Iterable[_Located], names: FreshNames, fixed: Set[str]
) -> None:
    """Write replacements into a graph or function and its subgraphs, and remove unread nodes."""
    removable: set[str] = set()
    scopes = [each.scope for each in root.nested()]
    read = {name for scope in scopes for record in scope.node_records for name in record[3]}
    initializers = set().union(*(scope.predefined_names() for scope in scopes))
    defined = set().union(*(scope.defined_names for scope in scopes))
    kept = (initializers - read) | (fixed & defined)  # these nodes were unread before, so they stay
    for container, replacements in graphs:
        nodes = container.node
        for each in replacements:
            _fill_node(nodes[each.position], each, names)
            removable |= _rename_outputs(nodes, each, names)
            for position, value in each.flattened.items():
                name = nodes[each.position].input[position] = names.fresh(each.inputs[position])
                assert is_graph(container)
                write_tensor(container.initializer.add(), value, name)
            removable |= each.removable
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
