"""Declared sizes of results that a runtime refuses, because it infers other sizes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from opshift.inference.infer_types import parameter_at
from opshift.model.graphs import is_graph
from opshift.model.messages import GraphProto, TensorShapeProto
from opshift.model.types import declared_dims, short_type
from opshift.runtimes.constant_values import INTEGERS, SIZED_BY_VALUES
from opshift.runtimes.model_nodes import ModelNode, ModelNodes


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
                refused = [each for each in dims if _is_foreign(each, names)]
            if refused:
                yield f"{place}, value {value.name!r}", refused


def remove_refused_sizes(model: ModelNodes, operators: Collection[str]) -> bool:
    """Remove the sizes that `refused_sizes` yields from the model, and return whether there were any."""
    found = list(refused_sizes(model, operators))
    for _, sizes in found:
        for each in sizes:
            each.Clear()
    return bool(found)


def _is_foreign(size: TensorShapeProto.Dimension, names: Collection[object] | None) -> bool:
    return names is not None and bool(size.dim_param) and size.dim_param not in names


def _input_sizes(graph: GraphProto) -> frozenset[object] | None:
    """Return the sizes and names of sizes of the inputs; `None` if an input declares neither for an axis.

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
