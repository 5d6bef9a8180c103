"""Comparison of the operators and connections of two models."""

import re
from collections import ChainMap, Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping, Sequence
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from typing import NamedTuple

from opshift.converter.convert import convert_with, plan_with
from opshift.converter.options import ALLOW_VALUES, AllowLike, Options
from opshift.converter.signature import ModelChange
from opshift.model.attributes import dense_tensors_in, graphs_in
from opshift.model.element_types import BY_NUMBER
from opshift.model.errors import InvalidModel, OpshiftError
from opshift.model.graphs import (
    ContainerProto,
    initializer_inputs,
    is_graph,
    nested_containers,
    nested_nodes,
    node_place,
)
from opshift.model.messages import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
)
from opshift.model.node import Tensor
from opshift.model.operator_ids import (
    DEFAULT_DOMAIN,
    LocalFunction,
    OperatorId,
    called_function,
    canonical_domain,
    function_id,
    function_label,
    opset_imports,
)
from opshift.model.tensors import element_count, read_tensor
from opshift.registry.registry import Registry
from opshift.rewriting.cached_rewrite import NodeRewrite

PARAMETER_TYPES = frozenset(("int64", "int32", "bool", "string"))
"""Element types of constants such as axes and shapes, which change the computation of a node."""

MAX_PARAMETER_ELEMENTS = 4096
"""Maximum number of elements of a parameter; larger constants of these types count as weights."""

WEIGHT = "weight"
"""Common digest of all constants that count as weights, whose elements are not compared."""

Digests = MutableMapping[str, str]
"""Digest of each value, by name."""


def output_digests(model: ModelProto, inputs: Container[str]) -> Digests:
    """Return a digest for each output of the graph: equal digests mean the same operators and connections.

    Digests ignore opsets: the same nodes have the same digest at every opset. Initializers that callers can
    override count as constants unless `inputs` contains their names.

    Raises:
        InvalidModel: functions call each other in a cycle.
    """
    defaults = initializer_inputs(model.graph)
    names = [each.name for each in model.graph.input if each.name in inputs or each.name not in defaults]
    values: Digests = {name: f"input {name}" for name in names}
    Structure(model.functions).add(model.graph, values)
    return {each.name: values.get(each.name, "") for each in model.graph.output}


class Structure:
    """Digests of values; a call has the digest of its function in place of the operator."""

    def __init__(self, functions: Iterable[FunctionProto]) -> None:
        self._digests: dict[LocalFunction, str] = {}
        by_id = {function_id(each): each for each in functions}
        # Called functions first, without recursion, because a chain of calls may be long.
        for called in _callees_first(by_id):
            self._digests[called] = self._function_digest(by_id[called])

    def add(self, container: ContainerProto, values: Digests, depth: int = 0) -> None:
        """Add the digests of the initializers and nodes of a graph or function to `values`."""
        if is_graph(container):
            for tensor in container.initializer:
                values.setdefault(tensor.name, _constant_digest(tensor))
            for sparse in container.sparse_initializer:
                values.setdefault(sparse.values.name, WEIGHT)
        for node in container.node:
            if node.output:
                self._add_node(node, values, depth)

    def _add_node(self, node: NodeProto, values: Digests, depth: int) -> None:
        inputs = [values.get(name, name) for name in node.input]
        operator = (canonical_domain(node.domain), node.op_type)
        if operator == (DEFAULT_DOMAIN, "Identity") and inputs:
            found = inputs[:1]
        elif operator == (DEFAULT_DOMAIN, "Constant") and len(node.attribute) == 1:
            found = [_constant_attribute_digest(node.attribute[0])]
        else:
            while inputs and not inputs[-1]:  # an empty name: an omitted input
                inputs.pop()
            attributes = [
                self._attribute_content(each, values, depth)
                for each in sorted(node.attribute, key=_attribute_name)
            ]
            key = _digest_of(self._digests.get(called_function(node), operator), attributes, inputs)
            found = [f"{key} {index}" for index in range(len(node.output))]
        values.update(zip(node.output, found, strict=False))

    def _attribute_content(self, attribute: AttributeProto, values: Digests, depth: int) -> object:
        graphs = [self._subgraph_digest(each, values, depth + 1) for each in graphs_in(attribute)]
        tensors = [read_tensor(each) or each.SerializeToString() for each in dense_tensors_in(attribute)]
        if graphs or tensors:
            return attribute.name, graphs, tensors
        if attribute.doc_string:
            attribute = type(attribute).FromString(attribute.SerializeToString())
            attribute.ClearField("doc_string")
        return attribute.SerializeToString(deterministic=True)

    def _subgraph_digest(self, graph: GraphProto, outer: Digests, depth: int) -> str:
        inputs = {each.name: f"input {depth} {index}" for index, each in enumerate(graph.input)}
        # A copy for each subgraph would take quadratic time, and lookups in a long chain of maps are slow.
        values = ChainMap(inputs, *(outer.maps if isinstance(outer, ChainMap) else (outer,)))
        self.add(graph, values, depth)
        return _digest_of([values.get(each.name, "") for each in graph.output])

    def _function_digest(self, function: FunctionProto) -> str:
        values: Digests = {name: f"input {index}" for index, name in enumerate(function.input)}
        self.add(function, values)
        defaults = sorted(each.SerializeToString() for each in function.attribute_proto)
        outputs = [values.get(name, "") for name in function.output]
        return _digest_of(sorted(map(str, function.attribute)), defaults, outputs)


def _callees_first(functions: dict[LocalFunction, FunctionProto]) -> list[LocalFunction]:
    calls = TopologicalSorter[LocalFunction]()
    for caller, function in functions.items():
        nodes = (node for each in nested_containers([function]) for node in each.node)
        calls.add(caller, *(functions.keys() & set(map(called_function, nodes))))
    try:
        return list(calls.static_order())
    except CycleError as error:
        names = " -> ".join(function_label(functions[each]) for each in error.args[1])
        raise InvalidModel(f"functions call each other in a cycle: {names}", remedy="use a Loop") from error


def _constant_digest(tensor: TensorProto) -> str:
    kind, count = BY_NUMBER.get(tensor.data_type), element_count(tensor)
    if kind is None or kind.name not in PARAMETER_TYPES or count is None or count > MAX_PARAMETER_ELEMENTS:
        return WEIGHT
    value = read_tensor(tensor)
    return WEIGHT if value is None else _digest_of(value)


def _constant_attribute_digest(attribute: AttributeProto) -> str:
    """Return the digest of a Constant node's value, which equals the digest of an equal initializer."""
    if attribute.name == "value":
        return _constant_digest(attribute.t)
    if attribute.name in ("value_int", "value_ints", "value_string", "value_strings"):
        is_list = attribute.name.endswith("s")
        kind = "string" if "string" in attribute.name else "int64"
        numbers, texts = (attribute.ints, attribute.strings) if is_list else ([attribute.i], [attribute.s])
        values = tuple(texts if kind == "string" else numbers)
        return _digest_of(Tensor(kind, (len(values),) if is_list else (), values))
    return WEIGHT


def _digest_of(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()


def _attribute_name(attribute: AttributeProto) -> str:
    return str(attribute.name)  # protobuf may return bytes for a string that is not UTF-8


Opsets = Mapping[str, int]


class PlacedNode(NamedTuple):
    """Node, the label of its graph or function in plans, and its opset imports."""

    path: str
    proto: NodeProto
    opsets: Opsets

    @property
    def label(self) -> str:
        """Label of the node in plans; nodes with the same name may share it."""
        return node_place(self.path, self.proto)

    @property
    def content(self) -> tuple[object, ...]:
        """Path, operator, inputs, outputs and attributes of the node, without its name and subgraphs."""
        node = self.proto
        attributes = tuple(each.SerializeToString() for each in node.attribute if not any(graphs_in(each)))
        return self.path, node.op_type, node.domain, tuple(node.input), tuple(node.output), attributes


Pairs = Sequence[tuple[PlacedNode | None, PlacedNode]]
"""Pairs: the node of the old model with the same content, or `None`, and a node of the new model."""


def operator_changes(old: ModelProto, new: ModelProto, registry: Registry) -> Iterator[ModelChange]:
    """Yield nodes with a new meaning at the new opsets, and differences of operators and connections."""
    originals = {node.content: node for node in _placed_nodes(old)}
    pairs = [(originals.get(node.content), node) for node in _placed_nodes(new)]
    restamped = tuple(_meaning_changes(old, new, pairs, registry))
    yield from restamped
    is_same, has_all = _same_structure(old, new), all(before for before, _ in pairs)
    if is_same and (restamped or has_all):
        return
    if _all_imports(old) != _all_imports(new):
        if any(_same_at(opsets, old, new, registry) for opsets in (_graph_imports(new), _graph_imports(old))):
            return
        if is_same:
            # Values have new names, so nodes cannot be compared one by one: report the whole graph.
            yield ModelChange("OPERATOR_MEANING_CHANGED", "graph")
    if is_same:
        return
    converted = _converted_or_none(old, _graph_imports(new), registry, ALLOW_VALUES) or old
    before, after = (Counter(node.op_type for node in _all_nodes(each)) for each in (converted, new))
    texts = map(_counts_text, (before - after, after - before))
    yield ModelChange("OPERATORS_CHANGED", "graph", *texts)


def _graph_imports(model: ModelProto) -> Opsets:
    return opset_imports(model.opset_import, model.ir_version)


def _all_imports(model: ModelProto) -> list[Opsets]:
    return [
        _graph_imports(model),
        *(opset_imports(each.opset_import) for each in model.functions if each.opset_import),
    ]


def _same_at(opsets: Opsets, old: ModelProto, new: ModelProto, registry: Registry) -> bool:
    """Return whether the models have the same structure after conversions of both to these opsets."""
    # Inexact conversions write other nodes: compare without allowing these conversions, then with them.
    for allow in ((), ALLOW_VALUES):
        converted = [_converted_or_none(model, opsets, registry, allow) for model in (old, new)]
        if converted[0] and converted[1] and _same_structure(converted[0], converted[1]):
            return True
    return False


def _counts_text(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=str))


def _same_structure(old: ModelProto, new: ModelProto) -> bool:
    """Return whether the outputs that both models have result from the same operators and connections."""
    inputs, others = ({each.name for each in model.graph.input} for model in (old, new))
    before, after = (output_digests(model, inputs & others) for model in (old, new))
    return all(before[name] == after[name] for name in before.keys() & after.keys())


def _converted_or_none(
    model: ModelProto, opsets: Opsets, registry: Registry, allow: AllowLike
) -> ModelProto | None:
    try:
        return convert_with(model, _comparison_options(opsets, registry, allow))[0]
    except OpshiftError:
        return None


def _comparison_options(opsets: Opsets, registry: Registry, allow: AllowLike = ALLOW_VALUES) -> Options:
    published = {each: registry.newest_opset(each) for each in registry.domains()}
    known = {each: opset for each, opset in opsets.items() if 1 <= opset <= published.get(each, 0)}
    return Options.of(known, allow=allow, registry=registry)


def _meaning_changes(
    old: ModelProto, new: ModelProto, pairs: Pairs, registry: Registry
) -> Iterator[ModelChange]:
    """Yield changes for nodes in both models whose operator versions compute different results.

    If a conversion between the two opsets, in either direction, keeps a node, the node is valid at both and
    computes the same.
    """
    changed_places: dict[str, tuple[set[str] | None, ...]] = {}
    places: dict[tuple[OperatorId, OperatorId], list[str]] = defaultdict(list)
    for original, node in pairs:
        if original is None or original.opsets == node.opsets:
            continue
        domain = canonical_domain(node.proto.domain)
        opsets = (each.opsets.get(domain, 0) for each in (original, node))
        source, target = (registry.known_at(node.proto.op_type, opset, domain) for opset in opsets)
        if source is None or target is None or source is target:
            continue
        key = str((original.opsets, node.opsets))
        if key not in changed_places:
            steps = ((old, node.opsets), (new, original.opsets))
            changed_places[key] = tuple(_changed_places(model, opsets, registry) for model, opsets in steps)
        if all(changed is None or node.label in changed for changed in changed_places[key]):
            places[source.id, target.id].append(node.label)
    for ids, found in places.items():
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        yield ModelChange("OPERATOR_MEANING_CHANGED", found[0] + more, *map(str, ids))


def _changed_places(model: ModelProto, opsets: Opsets, registry: Registry) -> set[str] | None:
    """Return the labels of nodes that a conversion changes or refuses; `None` if its planning fails."""
    try:
        plan = plan_with(model, _comparison_options(opsets, registry))
    except OpshiftError:
        return None
    changes = [change for container in plan.containers() for change in container.changes]
    nodes = {node.label: node for node in _placed_nodes(model)}
    places = [
        change.place
        for change in changes
        if not _keeps_node(change.result, nodes.get(_place_of(change.place)))
    ]
    return {_place_of(each) for each in (*places, *(refusal.place for refusal in plan.refusals))}


def _place_of(label: str) -> str:
    """Remove `, called by ...` from a node's label, which names the callers of a specialized function."""
    return re.sub(r", called by .*?(?=, node | / )", "", label)


def _keeps_node(result: NodeRewrite, node: PlacedNode | None) -> bool:
    """Return whether a rewrite reproduces the node; `False` without a node."""
    if node is None or len(result.operators) != 1:
        return False
    copied = type(node.proto).FromString(node.proto.SerializeToString())
    result.write([copied])
    return node._replace(proto=copied).content == node.content


def _placed_nodes(model: ModelProto) -> Iterator[PlacedNode]:
    opsets = _graph_imports(model)
    pending: list[tuple[str, ContainerProto, Opsets]] = [("graph", model.graph, opsets)]
    for function in model.functions:
        imports: Opsets = opset_imports(function.opset_import) if function.opset_import else opsets
        pending.append((f"function {function_label(function)}", function, imports))
    while pending:
        path, container, opsets = pending.pop()
        for node in container.node:
            yield PlacedNode(path, node, opsets)
            for attribute in node.attribute:
                name = f"{path} / {node.name or node.op_type}.{attribute.name}"
                pending += ((name, graph, opsets) for graph in graphs_in(attribute))


def _all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    return nested_nodes(model.graph, *model.functions)
