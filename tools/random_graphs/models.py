"""Random models over random opsets, with inputs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from opshift.registry.models import OperatorVersion
from opshift.registry.registry import default_registry
from random_graphs.assembly import model_of
from random_graphs.bodies import BUILDERS
from random_graphs.graph import Graph, Sampler
from random_graphs.nodes import add_node

if TYPE_CHECKING:
    import onnx

ML = "ai.onnx.ml"
MIN_OPSET, MAX_OPSET = 7, 26
"""The oldest and newest opset of the default domain that onnxruntime runs."""
BUILT_SEPARATELY = {*BUILDERS, "OptionalHasElement", "OptionalGetElement"}
"""Operators that have their own builders."""
EXCLUDED = {
    "ATen", "SequenceMap", "ImageDecoder", "GivenTensorFill", "GRUUnit", "ZipMap", "CastMap",
    "DictVectorizer", "SVMClassifier", "SVMRegressor", "TreeEnsemble", "TreeEnsembleClassifier",
}  # fmt: skip
"""Operators with unsupported input types, without a runtime, or with many interdependent attributes."""
MAX_TRIES = 4


class Case(NamedTuple):
    """A model, its inputs, and the values that it computes from them."""

    model: onnx.ModelProto
    feeds: dict[str, Any]
    values: dict[str, Any]


@cache
def operators(opset: int, ml: int) -> tuple[OperatorVersion | str, ...]:
    """Return the operator versions in effect, and the names of operators with builders."""
    registry = default_registry()
    found = [each.at(opset) for each in registry.operators("ai.onnx")]
    found += [each.at(ml) for each in registry.operators(ML)]
    drawn = [v for v in found if v and not v.deprecated and v.name not in BUILT_SEPARATELY | EXCLUDED]
    return (*drawn, *(name for name, (since, _) in BUILDERS.items() if since <= opset))


def grow(graph: Graph, most: int, depth: int = 0, least: int = 1) -> None:
    """Add some nodes to a graph."""
    for _ in range(graph.draw.integer(least, most)):
        any(
            _add_choice(graph, graph.one_of(operators(graph.opset, graph.opsets[ML])), depth)
            for _ in range(MAX_TRIES)
        )


def _add_choice(graph: Graph, choice: OperatorVersion | str, depth: int) -> bool:
    if isinstance(choice, OperatorVersion):
        return add_node(graph, choice)
    return depth < 2 and BUILDERS[choice][1](graph, lambda inner: grow(inner, 2, depth + 1))


def ir_versions(opset: int) -> list[int]:
    """Return IR versions of models with an opset."""
    return [10, 11] if opset >= 22 else [4, 6, 8, 9, 10] if opset > 8 else [3, 4, 8, 10]


def sample_case(
    draw: Sampler, opsets: tuple[int, int], nodes: tuple[int, int], *, empty: bool = False
) -> Case:
    """Draw a model at an opset from a range, with a number of nodes from a range."""
    opset = draw.integer(*opsets)
    ir_version = draw.pick(ir_versions(opset))
    graph = Graph(draw, {"": opset, ML: draw.integer(1, 5)}, ir_version, draw.integer(0, 2**16), empty=empty)
    grow(graph, nodes[1], least=nodes[0])
    return Case(model_of(graph), graph.feeds, {each.name: each.data for each in graph.values})
