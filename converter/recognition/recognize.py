"""Recognition of operators in a model: one node of an operator replaces nodes that compute its results.

Each pass visits the nodes of a graph from last to first, because the last node of a pattern computes its
result. Names of graph inputs and outputs do not change.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.converter.folding.dead_nodes import Removal, fixed_names, remove_dead_nodes
from opshift.converter.folding.decisions import declare_nodes
from opshift.converter.folding.fold import has_distinct_names
from opshift.converter.options import EVERY_OPERATOR, Options
from opshift.converter.plan.changes import METADATA_KEY
from opshift.converter.recognition.candidate import Candidate, Rejected, Replacement
from opshift.converter.recognition.expansion_cache import Expansions
from opshift.converter.recognition.graph_view import GraphView
from opshift.converter.recognition.load import operator_names, pattern_groups
from opshift.converter.recognition.matching import Matcher, candidates
from opshift.converter.recognition.pattern_groups import PatternGroup
from opshift.converter.recognition.patterns import Pattern
from opshift.converter.recognition.result import NearMiss, Recognition, RecognizedNode
from opshift.inference.function_scope import CallScope
from opshift.inference.root_scopes import add_call_facts, root_scopes
from opshift.model.attributes import ATTRIBUTE_TYPES, write_attribute
from opshift.model.errors import CannotConvert
from opshift.model.graphs import (
    Container,
    ContainerProto,
    graphs_of,
    is_graph,
    nested_containers,
    nested_nodes,
    node_place,
    remove_messages,
    root_graphs,
)
from opshift.model.indirect_reads import names_read_indirectly
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, model_domain
from opshift.model.tensors import write_tensor
from opshift.registry.models import OperatorVersion
from opshift.rewriting.workspace import FreshNames

MAX_PASSES = 3
"""Maximum number of passes: recognized nodes may be parts of the pattern of a larger operator."""


def recognize(model: ModelProto, options: Options) -> Recognition:
    """Recognize operators in a converted model: replace nodes in place, and return a summary.

    A model in which several values have the same name stays unchanged.
    """
    roots: list[ContainerProto] = [*root_graphs(model), *model.functions]
    counts = Counter(node.op_type for node in nested_nodes(*roots))
    before, op_types = counts.total(), frozenset(counts)
    one_pass = _Pass(model, options, None)
    if not one_pass.anchors(op_types) or not all(map(has_distinct_names, roots)):
        return Recognition(node_counts=(before, before))
    found: list[RecognizedNode] = []
    misses: dict[tuple[str, str], NearMiss] = {}
    for _ in range(MAX_PASSES):
        one_pass.run(op_types)
        found += one_pass.found
        for miss in one_pass.misses:
            misses.setdefault((miss.place, miss.operator), miss)
        wanted = {each.operator.name for each in one_pass.replacements}
        if not wanted:
            break
        op_types |= wanted
        one_pass = _Pass(model, options, wanted)
    recognized = {each.place for each in found}
    is_recorded = bool(found) and any(each.key == METADATA_KEY for each in model.metadata_props)
    if is_recorded:
        remove_messages(model.metadata_props, [each.key == METADATA_KEY for each in model.metadata_props])
    kept = tuple(each for each in misses.values() if each.place not in recognized)
    after = sum(1 for _ in nested_nodes(*roots)) if found else before
    return Recognition(tuple(found), kept, (before, after), is_recorded)


class _Located(NamedTuple):
    """Graph, subgraph or function, and the replacements to write into it."""

    container: ContainerProto
    replacements: Sequence[Replacement]


class _Pass:
    """One pass over a model; a pattern must contain an operator of `wanted`, unless `wanted` is `None`."""

    def __init__(self, model: ModelProto, options: Options, wanted: Set[str] | None) -> None:
        self._model, self._options, self._registry = model, options, options.registry
        self._wanted = wanted
        self._expansions = Expansions(options.registry, options.allow)
        self._shadowed = {(canonical_domain(each.domain), each.name) for each in model.functions}
        self._fixed = names_read_indirectly(model)
        self.found: list[RecognizedNode] = []
        self.misses: list[NearMiss] = []
        self.replacements: list[Replacement] = []

    def run(self, op_types: Set[str]) -> None:
        """Find and write all replacements; `op_types` includes the operators of all nodes in the model."""
        anchors = self.anchors(op_types)
        if not anchors:
            return
        located: list[tuple[ContainerProto, list[_Located]]] = []
        scopes = list(root_scopes(self._model, self._model, self._registry))
        for scope, _, _ in scopes:
            # Safe: if a size is 0, the matched values are empty, and have no elements that could differ.
            scope.evaluation.assumes_positive_sizes = True
            scope.evaluation.names_sizes = True
            declare_nodes(scope)
        if self._model.functions:
            add_call_facts([scope for scope, _, _ in scopes])
        for scope, container, path in scopes:
            found = list(self._visit(scope, path, anchors))
            if found:
                located.append((container, found))
        names = FreshNames()
        names.avoid(*(container for _, container, _ in scopes))
        for root, graphs in located:
            _write(root, graphs, names, self._fixed)

    def anchors(self, op_types: Set[str]) -> Mapping[str, Sequence[PatternGroup]]:
        """Return the groups of patterns whose operators all occur, by op_type of the last node."""
        found: defaultdict[str, list[PatternGroup]] = defaultdict(list)
        for group in self._groups():
            own = group.op_types
            if own <= op_types and (self._wanted is None or not own.isdisjoint(self._wanted)):
                found[group.near.op_type].append(group)
        return found

    def _groups(self) -> Iterator[PatternGroup]:
        requested = self._options.recognize
        imports = [
            *self._model.opset_import,
            *(i for each in self._model.functions for i in each.opset_import),
        ]
        newest: defaultdict[str, int] = defaultdict(int)
        for each in imports:
            domain = canonical_domain(each.domain)
            newest[domain] = max(newest[domain], each.version)
        names = operator_names(self._registry) if EVERY_OPERATOR in requested else ()
        for name in (*(f"{DEFAULT_DOMAIN}.{each}" for each in names), *requested - {EVERY_OPERATOR}):
            domain, _, op_type = name.rpartition(".")
            operator = self._registry.operator(op_type, domain)
            exists = operator is not None and operator.versions[0].since_version <= newest[domain]
            is_excluded = name in self._options.without or (domain, op_type) in self._shadowed
            if exists and not is_excluded:
                yield from pattern_groups(op_type, domain, self._registry)

    def _visit(
        self, scope: CallScope, path: str, anchors: Mapping[str, Sequence[PatternGroup]]
    ) -> Iterator[_Located]:
        container = scope.container
        fixed = frozenset(fixed_names(container) | self._fixed)
        view = GraphView(scope)
        taken: set[int] = set()
        found: list[Replacement] = []
        for record in reversed(scope.node_records):
            if record[2] not in anchors or record[0] in taken or record[1] not in ("", DEFAULT_DOMAIN):
                continue
            for pattern in candidates(anchors[record[2]], record, view):
                replacement = self._replacement(pattern, record, view, fixed, path)
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
            yield _Located(container, found)
        for position, node in enumerate(container.node):
            if position in taken:  # a node with a subgraph, such as a Loop, that a new node replaces
                continue
            for graph in graphs_of(node):
                yield from self._visit(scope.child(graph), node_place(path, node), anchors)

    def _replacement(
        self, pattern: Pattern, record: tuple[int, str, str, tuple[str, ...], tuple[str, ...]],
        view: GraphView, fixed: frozenset[str], path: str,
    ) -> Replacement | None:  # fmt: skip
        operator = self._operator(pattern, view)
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
            found = candidate.replacement(match, fixed, is_relaxed=matcher.is_relaxed)
        except (Rejected, CannotConvert) as error:
            place = node_place(path, view.scope.proto_of(record))
            self.misses.append(NearMiss(place, str(operator.id), str(error)))
            return None
        return found

    def _operator(self, pattern: Pattern, view: GraphView) -> OperatorVersion | None:
        """Return the operator version at the graph's opset; `None` if the pattern is for other versions."""
        found = view.scope.operator(pattern.operator, model_domain(pattern.domain))
        if found and pattern.versions and found.since_version not in pattern.versions:
            return None
        return found


def _write(root: ContainerProto, graphs: Iterable[_Located], names: FreshNames, fixed: Set[str]) -> None:
    """Write replacements into a graph or function and its subgraphs, and remove unread nodes."""
    removable: set[str] = set()
    read = {name for node in nested_nodes(root) for name in node.input}
    initializers = {name for each in nested_containers([root]) for name in Container(each).predefined_names()}
    kept = (initializers - read) | fixed  # unread before, so they stay
    for container, replacements in graphs:
        nodes = container.node
        for each in replacements:
            _fill(nodes[each.position], each, names)
            removable |= _rename_outputs(nodes, each, names)
            for position, value in each.flattened.items():
                name = nodes[each.position].input[position] = names.fresh(each.inputs[position])
                assert is_graph(container)
                write_tensor(container.initializer.add(), value, name)
            removable |= each.removable
    removal = Removal(lambda node: any(map(removable.__contains__, node.output)), named=kept)
    remove_dead_nodes(root, removal)


def _rename_outputs(nodes: Sequence[NodeProto], replacement: Replacement, names: FreshNames) -> set[str]:
    """Rename outputs of replaced nodes that the new node computes, and return the new names."""
    renamed: set[str] = set()
    for record in replacement.nodes:
        for index, name in enumerate(record[4]) if record[0] != replacement.position else ():
            if name and name in replacement.outputs:
                nodes[record[0]].output[index] = names.fresh(name)
                renamed.add(nodes[record[0]].output[index])
    return renamed


def _fill(proto: NodeProto, replacement: Replacement, names: FreshNames) -> None:
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
