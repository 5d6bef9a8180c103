"""Choose the element type of each value, and the nodes that keep their types between casts.

A node gets the new types if its operator version allows them. Otherwise its values keep their types, and
casts convert between old and new types. Constants, and results whose type an attribute sets, get the type
that their readers need, so they need no casts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from opshift.converter.element_types.graph_types import (
    INT32,
    GraphTypes,
    NodeTypes,
    TypedValue,
    bounds_of_output,
    bounds_of_stored,
    is_standard,
)
from opshift.converter.element_types.requested_types import EXACT_CHANGES, KEPT_AS, kept_operators
from opshift.inference.evaluator.element_facts import defining_scope
from opshift.inference.infer_types import CONTAINER_PREFIXES, parameter_at, type_from_attributes
from opshift.inference.scope import Scope
from opshift.model.attributes import graphs_in
from opshift.model.element_types import BY_NAME, element_names, type_string
from opshift.model.errors import CannotConvert, UnknownElementType
from opshift.model.graphs import graphs_of, is_graph, node_place
from opshift.model.messages import GraphProto, NodeProto
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.tensors import element_count
from opshift.registry.models import OperatorVersion, Parameter

SIZE_OPERATORS = ("Shape", "Size")

TENSOR_TYPES = tuple(map(type_string, BY_NAME))

SUBGRAPHS_REMEDY = "move the subgraph to an operator of ai.onnx"

MAX_CONSTANT = 1 << 12
"""Maximum elements of a constant in a region that keeps its types: larger ones change, to save memory."""


class TypeChoice:
    """Choice of the types of all values of a model without functions.

    Attributes:
        changes: new element type of each old element type.
        keeps_interface: whether inputs and outputs of the main graph keep their types.
        reasons: reasons against the conversion, by place of the node.
        kept: number of nodes that keep their types, by operator.
    """

    def __init__(self, changes: Mapping[str, str], *, keeps_interface: bool, is_old_ir: bool) -> None:
        self.changes = changes
        self.keeps_interface = keeps_interface
        self.reasons: dict[str, CannotConvert] = {}
        self.kept: dict[str, int] = {}
        self._is_old_ir = is_old_ir
        self._keeps_containers = False
        self._changed: dict[tuple[str, ...], frozenset[str]] = {}
        self._narrows = not EXACT_CHANGES.issuperset(changes.items())

    def choose(self, scope: Scope, path: str = "graph", parent: GraphTypes | None = None) -> GraphTypes:
        """Choose the types in a graph and its subgraphs."""
        graph = GraphTypes(scope, path, parent)
        container = scope.container
        assert is_graph(container), "functions are inlined"
        if parent is None and self.keeps_interface:
            interface = (scope.element_type(each.name) for each in (*container.input, *container.output))
            # No operator casts sequences: if an input or output would change, all sequences keep their types.
            self._keeps_containers = any(self.new_type(each) for each in interface if _is_container(each))
        scope.defined_names.update(name for node in container.node for name in node.output)
        self._add_inputs(graph, container)
        for node in container.node:
            self._add_bounds(graph, node)
            for name in filter(None, node.output):
                self._add_value(graph, name)
        for position, node in enumerate(container.node):
            try:
                graph.nodes[position] = self._node_types(node, graph)
            except CannotConvert as error:
                self.reasons[node_place(path, node)] = error
        for value in container.output:
            self._add_result(value.name, graph)
        if self._narrows and (between := keep_regions(graph)):
            self.kept["other nodes between them"] = self.kept.get("other nodes between them", 0) + between
        if parent is None:
            graph.settle()
        return graph

    def new_type(self, old: str | None) -> str | None:
        """Return the new type for an old element type or type string; `None` if it does not change."""
        if old is None or "map(" in old:
            return None
        if old in self.changes:
            return self.changes[old]
        names = element_names(old) if _is_container(old) else ()
        changed = next((each for each in names if each in self.changes), None)
        return old.replace(f"({changed})", f"({self.changes[changed]})") if changed else None

    def _add_value(
        self, graph: GraphTypes, name: str, *, is_stored: bool = False, keeps_type: bool = False
    ) -> None:
        old = graph.scope.element_type(name)
        new = self.new_type(old)
        if old is not None and new is not None:
            can_change = not (self._keeps_containers and _is_container(old))
            if "int64" in element_names(old):  # sequences stay: the bounds of their elements are unknown
                bounds = graph.bounds_of(name)
                can_change = not _is_container(old) and bounds is not None and bounds.fits
            kept = KEPT_AS.get((old, new), old)
            stored = None if is_stored else old if keeps_type else new if can_change else kept
            graph.values[name] = TypedValue(old, new, kept, stored, can_change)

    def _add_inputs(self, graph: GraphTypes, container: GraphProto) -> None:
        inputs = {each.name for each in container.input}
        stored = [*(each.name for each in container.initializer)]
        stored += (each.values.name for each in container.sparse_initializer)
        is_interface = graph.parent is None
        if self._is_old_ir and is_interface:  # runtimes treat these initializers as constants
            graph.scope.constant_inputs = graph.scope.initializer_inputs()
        if "int64" in self.changes:
            # These inputs become int32, so callers can pass only numbers in its range.
            if is_interface and not self.keeps_interface:
                graph.bounds.update(dict.fromkeys(inputs, INT32))
            constants = (name for name in stored if name not in inputs or self._is_old_ir)
            known = ((name, bounds_of_stored(name, graph.scope)) for name in constants)
            graph.bounds.update((name, bounds) for name, bounds in known if bounds)
        for name in inputs:
            self._add_value(graph, name, keeps_type=is_interface and self.keeps_interface)
        for name in stored:
            if name not in inputs or self._is_old_ir:
                self._add_value(graph, name, is_stored=True)

    def _add_bounds(self, graph: GraphTypes, proto: NodeProto) -> None:
        operator = graph.scope.operator(proto.op_type, proto.domain)
        if operator is None or "int64" not in self.changes or operator.domain != DEFAULT_DOMAIN:
            return
        node = Node.from_proto(proto)
        for position, name in enumerate(node.outputs):
            if name and graph.scope.element_type(name) == "int64":
                found = bounds_of_output(node, operator, position, graph.scope, graph.bounds_of)
                if found:
                    graph.bounds[name] = found

    def _add_result(self, name: str, graph: GraphTypes) -> None:
        value = graph.find(name)
        if value is None:
            return
        wanted = self.result_type(value, is_main=graph.parent is None)
        value.needed.add(wanted)
        value.is_result |= name in graph.values
        if name in graph.scope.constant_inputs:  # a value that is an input and an output has only one type
            value.stored = wanted

    def result_type(self, value: TypedValue, is_main: bool) -> str:
        """Return the type of a value as an output of the main graph (`is_main`) or of a subgraph."""
        if is_main:
            return value.new if value.can_change and not self.keeps_interface else value.old
        return value.new if value.passes_subgraphs else value.kept

    def _require_no_mapping(self, node: Node, operator: OperatorVersion, graph: GraphTypes) -> None:
        """Refuse a SequenceMap of sequences that keep their types: its body would get the new types."""
        if not self._keeps_containers or not is_standard(operator, "SequenceMap"):
            return
        sequences = filter(None, (*node.inputs, *node.outputs))
        kept = next((each for each in map(graph.scope.element_type, sequences) if self.new_type(each)), None)
        if kept is not None:
            reason = f"it maps sequences that keep their types, such as {kept}"
            remedy = "convert the inputs and outputs, too, or convert to opset 16 first"
            raise CannotConvert(reason, "type.sequence", subject=kept, remedy=remedy)

    def _node_types(self, proto: NodeProto, graph: GraphTypes) -> NodeTypes:
        scope, node = graph.scope, Node.from_proto(proto)
        operator = scope.operator(proto.op_type, proto.domain)
        found = NodeTypes()
        if operator is None:
            self._keep_types_of_unknown_operator(proto, graph, found)
            return found
        self._require_known_types(node, operator, graph)
        self._require_no_mapping(node, operator, graph)
        self._choose_in_subgraphs(proto, graph)
        groups = _groups_of(node, operator, graph)
        keeps = self._keeps_types(operator, operator.name) or self._computes_sizes(node, graph)
        kept = {
            key
            for key, members in groups.items()
            if keeps
            or not all(each.allows(operator) for each in members)
            or any(self._keeps_types(operator, f"{operator.name}.{each.formal.name}") for each in members)
            or (operator.holds_graphs and not all(each.value.passes_subgraphs for each in members))
        }
        if any(each.value.stored is not None for key in kept for each in groups[key]):
            self.kept[str(operator.id)] = self.kept.get(str(operator.id), 0) + 1
        for key, members in groups.items():
            for each in members:
                chosen = each.kept_type(operator) if key in kept else each.value.new
                if each.is_input and key not in kept and is_standard(operator, "Cast"):
                    # A Cast accepts every type, so its input needs no other Cast.
                    found.inputs[each.position] = None
                elif each.is_input:
                    found.inputs[each.position] = chosen
                    each.value.needed.add(chosen)
                else:
                    flexible = key not in kept and each.is_flexible
                    found.outputs[each.position] = each.value.stored = None if flexible else chosen
        _add_sizes(node, operator, graph, found)
        return found

    def _choose_in_subgraphs(self, proto: NodeProto, graph: GraphTypes) -> None:
        for attribute in proto.attribute:
            for inner in graphs_in(attribute):
                scope = graph.scope.child(inner)
                scope.owner = proto
                path = f"{graph.path} / {proto.name or proto.op_type}.{attribute.name}"
                graph.children[id(inner)] = self.choose(scope, path, graph)

    def _keep_types_of_unknown_operator(self, proto: NodeProto, graph: GraphTypes, found: NodeTypes) -> None:
        if next(graphs_of(proto), None) is not None:
            reason = f"{proto.op_type} is unknown and has a subgraph"
            raise CannotConvert(reason, "operator.unknown", remedy=SUBGRAPHS_REMEDY)
        for position, name in enumerate(proto.input):
            value = graph.find(name) if name else None
            if value is not None:
                found.inputs[position] = value.old
                value.needed.add(value.old)
        for position, name in enumerate(proto.output):
            if name in graph.values:
                found.outputs[position] = graph.values[name].stored = graph.values[name].old
        if found.inputs or found.outputs:
            label = f"{proto.domain}.{proto.op_type}"
            self.kept[label] = self.kept.get(label, 0) + 1

    def _require_known_types(self, node: Node, operator: OperatorVersion, graph: GraphTypes) -> None:
        """Raise UnknownElementType for an input of unknown type that may have one of the changed types."""
        for position, name in enumerate(node.inputs):
            if not name or graph.scope.element_type(name) is not None:
                continue
            formal = parameter_at(operator.inputs, position)
            types = self._changed_among(operator.types_of(formal)) if formal else None
            if types and not types.isdisjoint(_produced_types(name, graph.scope)):
                raise UnknownElementType(name)

    def _changed_among(self, types: tuple[str, ...]) -> frozenset[str]:
        found = self._changed.get(types)
        if found is None:
            changed = [each for each in types if not self.changes.keys().isdisjoint(element_names(each))]
            found = self._changed[types] = frozenset(changed)
        return found

    def _keeps_types(self, operator: OperatorVersion, name: str) -> bool:
        """Return whether `name`, such as `Pad.axes`, keeps its types; in other domains, all names or none."""
        kept, listed = kept_operators(), name if operator.domain == DEFAULT_DOMAIN else operator.domain
        return listed in kept["always"] or (self._narrows and listed in kept["narrowing"])

    def _computes_sizes(self, node: Node, graph: GraphTypes) -> bool:
        """Return whether a node must keep sizes exact: not all sizes above 2,048 are exact in float16."""
        own = (each for each in node.inputs if each and graph.find(each) is not None)
        return self._narrows and any(map(graph.is_size, own)) and _depends_on_sizes(node, graph)


def _add_sizes(node: Node, operator: OperatorVersion, graph: GraphTypes, found: NodeTypes) -> None:
    """Add the outputs of a node to `graph.sizes` if they depend on sizes and constants alone."""
    # Except for Cast, results with a new type are not sizes: Gather may select rows of a table by a size.
    news = {graph.values[each].new for each in node.outputs if each in graph.values}
    keeps = not found.outputs or is_standard(operator, "Cast") or not news.issuperset(found.inputs.values())
    if is_standard(operator, *SIZE_OPERATORS) or (keeps and _depends_on_sizes(node, graph)):
        graph.sizes.update(filter(None, node.outputs))


def _depends_on_sizes(node: Node, graph: GraphTypes) -> bool:
    names = list(filter(None, node.inputs))
    return any(map(graph.is_size, names)) and all(
        graph.is_size(each) or _is_stored(each, graph) for each in names
    )


GroupKey = str | tuple[object, ...]
"""Type variable or type, a tuple of several, or a pair such as `("input", 0)` for a single value."""


@dataclass
class _Member:
    """Value in a group of equal types; attributes can choose (`is_flexible`) or fix (`is_fixed`) its type."""

    is_input: bool
    position: int
    formal: Parameter
    value: TypedValue
    is_flexible: bool = False
    is_fixed: bool = False

    def allows(self, operator: OperatorVersion) -> bool:
        allowed = operator.types_of(self.formal)
        return self.value.can_change and not self.is_fixed and type_string(self.value.new) in allowed

    def kept_type(self, operator: OperatorVersion) -> str:
        """Return the type of the member if its group does not get the new type."""
        is_allowed = not self.is_fixed and type_string(self.value.kept) in operator.types_of(self.formal)
        return self.value.kept if is_allowed else self.value.old


def _groups_of(node: Node, operator: OperatorVersion, graph: GraphTypes) -> Mapping[GroupKey, list[_Member]]:
    """Return the inputs and outputs with changeable types, in groups that must change together."""
    groups: dict[GroupKey, list[_Member]] = {}
    for key, member in (*_inputs(node, operator, graph), *_outputs(node, operator, graph)):
        groups.setdefault(key, []).append(member)
    # Sequences and their elements have different type variables, but must change together.
    variables_of: dict[str, list[GroupKey]] = {}
    for key, members in groups.items():
        if not isinstance(key, tuple):
            for element in element_names(members[0].value.old):
                variables_of.setdefault(element, []).append(key)
    for keys in variables_of.values():
        if any(_is_container(each.value.old) for key in keys for each in groups[key]):
            groups[tuple(keys)] = [each for key in keys for each in groups.pop(key)]
    return groups


def _inputs(node: Node, operator: OperatorVersion, graph: GraphTypes) -> Iterator[tuple[GroupKey, _Member]]:
    for position, name in enumerate(node.inputs):
        formal, value = parameter_at(operator.inputs, position), graph.find(name) if name else None
        if formal is not None and value is not None:
            key = formal.type if formal.homogeneous else ("input", position)
            yield key, _Member(True, position, formal, value)


def _outputs(node: Node, operator: OperatorVersion, graph: GraphTypes) -> Iterator[tuple[GroupKey, _Member]]:
    variables = {each.name: each.type for each in operator.inputs}
    for position, name in enumerate(node.outputs):
        formal, value = parameter_at(operator.outputs, position), graph.values.get(name) if name else None
        if formal is None or value is None:
            continue
        stated = has_declared_type(operator, node, formal)
        is_fixed = operator.name != "Constant" and any(map(node.attribute, formal.element_attributes))
        key: GroupKey = variables.get(formal.absent_type or "", formal.type)
        if stated or not formal.homogeneous:
            key = ("output", position)
        yield key, _Member(False, position, formal, value, stated, is_fixed)


def _is_container(old: str | None) -> bool:
    """Return whether a type string is a sequence or optional type."""
    return old is not None and old.startswith(CONTAINER_PREFIXES)


def has_declared_type(operator: OperatorVersion, node: Node, formal: Parameter) -> bool:
    """Return whether attributes of a node, or their absence, determine the type of an output."""
    if operator.name == "Constant" or type_from_attributes(operator, node, formal) is not None:
        return True
    return formal.type_attribute is not None and "(" in (formal.absent_type or "")


def _produced_types(name: str, scope: Scope) -> Sequence[str]:
    """Return the types that a value's producer allows; all tensor types if the producer is unknown."""
    defining = defining_scope(scope, name)
    producer = defining.producer(name) if defining else None
    if producer is None or producer.operator is None:
        return TENSOR_TYPES
    formal = parameter_at(producer.operator.outputs, producer.position)
    return producer.operator.types_of(formal) if formal else ()


def _is_stored(name: str, graph: GraphTypes) -> bool:
    """Return whether a value is a Constant's output, or a dense initializer that callers cannot override."""
    scope = defining_scope(graph.scope, name)
    if scope is None or scope.is_overridable(name):
        return False
    record = scope.producing_records.get(name)
    return scope.initializer(name) is not None if record is None else record[2] == "Constant"


def kept_sentence(kept: Mapping[str, int]) -> str:
    """Return a sentence about the nodes that keep their types; empty if there are none."""
    names = ", ".join(f"{count:,} {operator}" for operator, count in sorted(kept.items()))
    return f"element types: nodes that keep their types, with casts around them: {names}" if kept else ""


@dataclass
class _Region:
    """Connected nodes that would get new types, and the values that casts at their boundary would convert."""

    nodes: list[int] = field(default_factory=list)
    cast: set[str] = field(default_factory=set)
    is_closed: bool = True
    """Whether all neighbors keep their types or are small constants, and no graph shares the values."""


def keep_regions(graph: GraphTypes) -> int:
    """Keep the types in closed regions of a graph that would need at least as many casts as they have nodes.

    Between DequantizeLinear and QuantizeLinear, which keep float, a Conv in float16 would need a cast for
    each value, and runtimes would not recognize the quantized Conv.

    Returns:
        The number of nodes that keep their types.
    """
    count = 0
    for region in _candidate_regions(graph):
        if region.is_closed and len(region.cast) >= len(region.nodes):
            count += len(region.nodes)
            for position in region.nodes:
                _keep_types_of_node(position, graph)
    return count


def _keep_types_of_node(position: int, graph: GraphTypes) -> None:
    types, node = graph.nodes[position], graph.scope.nodes[position]
    for place in types.inputs:
        value = graph.find(node.input[place])
        assert value is not None, "only values with changeable types are listed"
        if types.inputs[place] is not None:
            types.inputs[place] = value.kept
            value.needed.add(value.kept)
    for place, chosen in types.outputs.items():
        if chosen is not None:
            value = graph.values[node.output[place]]
            types.outputs[place] = value.stored = value.kept


def _candidate_regions(graph: GraphTypes) -> Iterator[_Region]:
    nodes = graph.scope.nodes
    candidates = {position for position in graph.nodes if _is_candidate(position, graph)}
    producers = {
        name: position for position in graph.nodes for name in nodes[position].output if name in graph.values
    }
    readers: defaultdict[str, set[int]] = defaultdict(set)
    for position, types in graph.nodes.items():
        for place in types.inputs:
            readers[nodes[position].input[place]].add(position)
    seen: set[int] = set()
    for start in sorted(candidates):
        if start in seen:
            continue
        region, pending = _Region(), [start]
        seen.add(start)
        while pending:
            position = pending.pop()
            region.nodes.append(position)
            for other in _neighbors(position, graph, region, producers, readers):
                if other not in candidates:
                    continue
                if other not in seen:
                    seen.add(other)
                    pending.append(other)
        yield region


def _is_candidate(position: int, graph: GraphTypes) -> bool:
    """Return whether a region can contain a node: it has inputs to change, and keeps none of its types."""
    types, node = graph.nodes[position], graph.scope.nodes[position]
    inputs = ((graph.find(node.input[place]), chosen) for place, chosen in types.inputs.items())
    outputs = ((graph.values[node.output[place]], chosen) for place, chosen in types.outputs.items())
    return bool(types.inputs) and all(
        value is not None and chosen in (value.new, None) for value, chosen in (*inputs, *outputs)
    )


def _neighbors(
    position: int,
    graph: GraphTypes,
    region: _Region,
    producers: dict[str, int],
    readers: defaultdict[str, set[int]],
) -> Iterator[int]:
    """Yield the positions of a node's neighbors, and update `cast` and `is_closed` of the region."""
    node, types = graph.scope.nodes[position], graph.nodes[position]
    if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
        region.is_closed = False
    for place, chosen in types.inputs.items():
        name = node.input[place]
        value, producer = graph.find(name), producers.get(name)
        if producer is None:
            region.is_closed &= _is_small_constant(name, graph)
        elif value is not None and value.stored not in (value.new, None):
            if chosen is not None:
                region.cast.add(name)
        elif value is not None and value.stored is not None:
            yield producer
    for place in types.outputs:
        name = node.output[place]
        value = graph.values[name]
        region.is_closed &= not value.is_result and not graph.scope.is_captured(name)
        if value.stored == value.new and value.needed - {value.new}:
            region.cast.add(name)
        yield from readers[name]


def _is_small_constant(name: str, graph: GraphTypes) -> bool:
    tensor = graph.scope.initializer(name)
    if tensor is None or graph.scope.is_overridable(name):
        return False
    count = element_count(tensor)
    return count is not None and count <= MAX_CONSTANT
