"""Nodes without a name, for runtimes whose optimizers derive the names of new nodes from them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import count

from opshift.model.graphs import ContainerProto, nested_containers, root_graphs
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.operator_ids import canonical_domain


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
