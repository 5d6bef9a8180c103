"""Comparison of two models node by node."""

from collections import ChainMap
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from opshift.analysis.comparison.compare import model_with_graph
from opshift.analysis.comparison.contents import external_data_may_differ
from opshift.analysis.model_diff.match_nodes import NodeMatcher, Renames
from opshift.analysis.model_diff.nodes import node_change
from opshift.analysis.model_diff.properties import property_changes, with_renames
from opshift.analysis.model_diff.regions import regions_of
from opshift.analysis.model_diff.result import Change, ContainerDiff, ModelDiff, NodeChange
from opshift.model.attributes import graphs_in
from opshift.model.errors import CannotWrite, not_utf8_error
from opshift.model.files import ModelLike, serialize_model
from opshift.model.graphs import (
    Container,
    ContainerProto,
    graphs_of,
    nested_nodes,
    node_label,
    training_graphs,
)
from opshift.model.locations import folder_of
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.node_key import require_utf8_names
from opshift.model.operator_ids import function_id, function_label


class Pair(NamedTuple):
    """Graph or function of both models, and the names of its values that differ."""

    place: str
    old: ContainerProto
    new: ContainerProto
    renames: Renames


def diff_model(old: ModelLike, new: ModelLike) -> ModelDiff:
    """Compare two models node by node.

    Nodes are matched by their operator, outputs, attributes, inputs and names, which a conversion keeps. The
    order of nodes does not affect the result of a model and is one property of its graph. External data files
    are compared if both models are paths.

    Args:
        old: a ModelProto of opshift or `onnx`, serialized bytes, or a path.
        new: a model in one of the same forms.

    Returns:
        All differences: `print` shows a summary, and `write_report` writes a page.

    Raises:
        InvalidModel: one of them is not a model.
    """
    before, after = model_with_graph(old), model_with_graph(new)
    try:
        containers, kept = _compare(before, after)
    except UnicodeDecodeError as error:
        raise not_utf8_error() from error
    if external_data_may_differ(before, after, (folder_of(old), folder_of(new))):
        change = Change("external data files", "", "differ, or were not compared")
        containers.append(ContainerDiff("model", (change,)))
    with suppress(CannotWrite):  # larger than 2 GiB
        if not containers and serialize_model(before) != serialize_model(after):
            change = Change("encoding", "", "the same content in other bytes, or unknown fields")
            containers.append(ContainerDiff("model", (change,)))
    return ModelDiff(tuple(containers), kept)


def _compare(old: ModelProto, new: ModelProto) -> tuple[list[ContainerDiff], int]:
    """Return the differences of the model, its graphs and its functions, and the number of equal nodes."""
    found = [ContainerDiff("model", tuple(property_changes(old, new, ("graph",))))]
    kept = 0
    pending = _roots(old, new)[::-1]
    while pending:
        pair = pending.pop()
        difference, same, subgraphs = _compare_containers(pair)
        found.append(difference)
        kept += same
        pending += subgraphs[::-1]
    return [each for each in found if each.properties or each.regions or each.renamed], kept


def _roots(old: ModelProto, new: ModelProto) -> list[Pair]:
    """Return the main graph, and the functions and training graphs that both models have."""
    functions = [{function_id(each): each for each in model.functions} for model in (old, new)]
    training = [{each.path: each.graph for each in training_graphs(model)} for model in (old, new)]
    return [
        Pair("graph", old.graph, new.graph, {}),
        *(
            Pair(f"function {function_label(each)}", each, functions[1][name], {})
            for name, each in functions[0].items()
            if name in functions[1]
        ),
        *(
            Pair(path, each, training[1][path], {})
            for path, each in training[0].items()
            if path in training[1]
        ),
    ]


def _compare_containers(pair: Pair) -> tuple[ContainerDiff, int, list[Pair]]:
    """Return the differences of a graph, its number of equal nodes, and its subgraphs to compare."""
    old, new = Container(pair.old), Container(pair.new)
    for container in (old, new):
        require_utf8_names(
            name for each in container.node_records for name in (*each[1:3], *each[3], *each[4])
        )
    positions = NodeMatcher(old, new, pair.renames).positions
    changes: list[NodeChange] = []
    kept: dict[int, int] = {}
    subgraphs: list[Pair] = []
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
    order = [positions[each] for each in sorted(positions)]
    if order != sorted(order):
        properties.append(Change("order of nodes", "", "differs"))
    regions = regions_of([each for each in changes if each.status != "renamed"], kept, old, new)
    renamed = tuple(each for each in changes if each.status == "renamed")
    return ContainerDiff(pair.place, tuple(properties), tuple(regions), renamed), count, subgraphs


def _subgraphs(pair: Pair, old: NodeProto, new: NodeProto) -> Iterator[Pair]:
    attributes = {each.name: each for each in old.attribute}
    label = node_label(new.name, new.op_type, new.output)
    for each in new.attribute:
        if each.name in attributes:
            graphs = zip(graphs_in(attributes[each.name]), graphs_in(each), strict=False)
            for position, (before, after) in enumerate(graphs):
                place = f"{pair.place}, {label} {each.name}{f'[{position}]' if each.graphs else ''}"
                yield Pair(place, before, after, ChainMap({}, pair.renames))
