"""Properties for which a runtime may refuse a model, and changes that remove these properties."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count, islice

from opshift.inference.infer_types import parameter_at
from opshift.inference.root_scopes import graph_scopes
from opshift.model.graphs import ContainerProto, is_graph, nested_containers, nested_nodes, root_graphs
from opshift.model.messages import GraphProto, ModelProto, NodeProto, TensorShapeProto
from opshift.model.operator_ids import canonical_domain
from opshift.model.types import declared_dims, short_type
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.runtimes.runtime import Runtime
from opshift.runtimes.constant_values import INTEGERS, SIZED_BY_VALUES
from opshift.runtimes.model_nodes import ModelNode, ModelNodes


def model_notes(model: ModelNodes, runtime: Runtime) -> Iterator[str]:
    """Yield reasons why a runtime may refuse a model, besides missing kernels."""
    if runtime.may_need_input_sizes:
        for name in model.unsized_inputs:
            reason = f"{runtime.name} refuses some models with inputs whose sizes are not all declared"
            yield f"graph, input {name!r}: {reason}"
    if runtime.refuses_sizes_after:
        # one note for the whole model, because a large model may declare thousands of such values
        for place, _ in islice(refused_sizes(model, runtime.refuses_sizes_after), 1):
            reason = f"{runtime.name} refuses sizes in `value_info` that it does not infer"
            yield f"{place}: {reason}; `opshift fit` removes them"
    if runtime.may_count_omitted_inputs:
        # one note for the whole model, because many nodes may end in omitted inputs
        for each in islice(nodes_with_omitted_inputs(model), 1):
            reason = f"{runtime.name} refuses some nodes that end in omitted inputs"
            yield f"{each.place}: {reason}; `opshift fit` removes these inputs"
    if runtime.needs_names and count_shared_inputs(model.graphs, runtime.needs_names) > 1:
        names = ", ".join(runtime.needs_names)
        yield f"graph: {runtime.name} gives two nodes the same name if it optimizes unnamed nodes of {names}"


def nodes_with_omitted_inputs(model: ModelNodes) -> Iterator[ModelNode]:
    """Yield the nodes with trailing omitted inputs that their definitions do not require."""
    for each in model.nodes:
        if _needed_length(each.node.inputs, each.operator) < len(each.node.inputs):
            yield each


def remove_omitted_inputs(model: ModelProto, registry: Registry) -> None:
    """Remove trailing omitted inputs from the nodes of the graphs; this keeps the meaning of the nodes."""
    if not any(node.input and not node.input[-1] for node in nested_nodes(*root_graphs(model))):
        return  # creating scopes takes time, and few models have such a node
    for scope, _ in graph_scopes(model, registry):
        for node in scope.container.node:
            del node.input[_needed_length(node.input, scope.operator(node.op_type, node.domain)) :]


def _needed_length(names: Collection[str], operator: OperatorVersion | None) -> int:
    """Return the number of inputs up to the last present one, but at least the required number.

    For an undefined operator, return the number of all inputs.
    """
    given = max((number for number, name in enumerate(names, 1) if name), default=0)
    return len(names) if operator is None else min(len(names), max(given, operator.min_input))


def count_shared_inputs(graphs: Iterable[tuple[str, ContainerProto]], operators: Collection[str]) -> int:
    """Return the number of values that are the first input of two or more unnamed nodes.

    Args:
        graphs: the graphs with their places; values with the same name in two graphs are different.
        operators: the operators of the nodes, such as `ai.onnx.Gather`.
    """
    counts = Counter(
        (place, node.input[0])
        for place, graph in graphs
        for node in graph.node
        if node.input and _lacks_name(node, operators)
    )
    return sum(number > 1 for number in counts.values())


def name_nodes(model: ModelProto, operators: Collection[str]) -> None:
    """Name the nodes of some operators, given as `ai.onnx.Gather`, that have no name."""
    nodes = [node for graph in nested_containers(root_graphs(model)) for node in graph.node]
    used = {each.name for each in nodes}
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))
    for node in nodes:
        if _lacks_name(node, operators):
            names = (f"{node.op_type}_{number}" for number in numbers[node.op_type])
            node.name = next(name for name in names if name not in used)


def _lacks_name(node: NodeProto, operators: Collection[str]) -> bool:
    return not node.name and f"{canonical_domain(node.domain)}.{node.op_type}" in operators


def refused_sizes(
    model: ModelNodes, operators: Collection[str]
) -> Iterator[tuple[str, Sequence[TensorShapeProto.Dimension]]]:
    """Yield the place of each value whose `value_info` declares refused sizes, and these sizes.

    Args:
        model: the nodes of the model.
        operators: operators with results whose sizes depend on values, see `Runtime.refuses_sizes_after`.
    """
    graphs = [(place, graph) for place, graph in model.graphs if is_graph(graph)]
    if not any(graph.value_info for _, graph in graphs):
        return
    names = _input_sizes(graphs[0][1])
    later = _sized_in_runs(model, operators)
    for place, graph in graphs:
        for value in graph.value_info:
            dims = value.type.tensor_type.shape.dim
            if value.name in later:
                refused = [each for each in dims if each.ByteSize()]
            else:
                refused = [each for each in dims if _has_unknown_name(each, names)]
            if refused:
                yield f"{place}, value {value.name!r}", refused


def remove_refused_sizes(model: ModelNodes, operators: Collection[str]) -> bool:
    """Remove the sizes that `refused_sizes` yields from the model, and return whether there were any."""
    found = list(refused_sizes(model, operators))
    for _, sizes in found:
        for each in sizes:
            each.Clear()
    return bool(found)


def _has_unknown_name(size: TensorShapeProto.Dimension, names: Collection[object] | None) -> bool:
    return names is not None and bool(size.dim_param) and size.dim_param not in names


def _input_sizes(graph: GraphProto) -> frozenset[object] | None:
    """Return the sizes and dimension names of the inputs; `None` if a dimension or rank is undeclared.

    A runtime that infers such a size from a later result needs the declaration of this result.
    """
    shapes = [declared_dims(each.type) for each in graph.input]
    sizes = {size for dims in shapes for size in ((None,) if dims is None else dims)}
    return None if None in sizes else frozenset(sizes)


def _sized_in_runs(model: ModelNodes, operators: Collection[str]) -> set[str]:
    """Return the results of nodes of `operators` whose sizes depend on values, and all dependent results.

    Results of nodes with subgraphs count only if an input of the node does.
    """
    found: set[str] = set()
    for each in model.nodes:
        node = each.node
        is_first = f"{each.domain}.{node.op_type}" in operators and _depends_on_values(each)
        if is_first or not found.isdisjoint(node.inputs):
            found.update(filter(None, node.outputs))
    return found


def _depends_on_values(node: ModelNode) -> bool:
    """Return whether the sizes of the outputs may depend on values that differ between runs."""
    return any(not node.constants.contain(node.scope, each) for each in filter(None, _size_inputs(node)))


def _size_inputs(node: ModelNode) -> Iterator[str]:
    """Yield the inputs whose elements may determine output sizes.

    Except for operators in `SIZED_BY_VALUES`, these are the inputs that only accept integers, such as `K` of
    TopK: data may be integers, too.
    """
    operator, names = node.operator, node.node.inputs
    if operator is None or node.node.op_type in SIZED_BY_VALUES:
        yield from names
        return
    for position, name in enumerate(names):
        parameter = parameter_at(operator.inputs, position)
        if parameter is None or all(short_type(each) in INTEGERS for each in operator.types_of(parameter)):
            yield name
