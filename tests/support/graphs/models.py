"""The strategy: random models over random opsets, with what to run them on."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import strategies as st

from opshift.registry.catalogue import default_registry
from opshift.registry.models import OperatorVersion
from support.graphs.assembly import model_of
from support.graphs.bodies import SINCE
from support.graphs.graph import Draw, Graph
from support.graphs.nodes import add_node

if TYPE_CHECKING:
    import onnx

ML = "ai.onnx.ml"
OLDEST, NEWEST = 7, 26
"""The opsets of the default domain that onnxruntime runs."""
HELD = {*SINCE, "OptionalHasElement", "OptionalGetElement"}
"""Operators that are drawn in ways of their own."""
LEFT_OUT = {
    "ATen", "SequenceMap", "ImageDecoder", "GivenTensorFill", "GRUUnit", "ZipMap", "CastMap",
    "DictVectorizer", "SVMClassifier", "SVMRegressor", "TreeEnsemble", "TreeEnsembleClassifier",
}  # fmt: skip
"""Of other inputs than tensors and sequences, that no runtime here runs, or of many attributes at odds."""
TRIES = 4


class Case(NamedTuple):
    """A model, what to run it on, and what its values are then."""

    model: onnx.ModelProto
    feeds: dict[str, Any]
    values: dict[str, Any]


@cache
def operators(opset: int, ml: int) -> tuple[OperatorVersion | str, ...]:
    """The operators in force, and the names of those that hold graphs."""
    registry = default_registry()
    found = [each.at(opset) for each in registry.operators("ai.onnx")]
    found += [each.at(ml) for each in registry.operators(ML)]
    plain = [v for v in found if v and not v.deprecated and v.name not in HELD | LEFT_OUT]
    return (*plain, *(name for name, (since, _) in SINCE.items() if since <= opset))


def grow(graph: Graph, most: int, depth: int = 0) -> None:
    """Add some nodes to a graph."""
    for _ in range(graph.draw(st.integers(1, most))):
        any(_add(graph, graph.one_of(operators(graph.opset, graph.opsets[ML])), depth) for _ in range(TRIES))


def _add(graph: Graph, chosen: OperatorVersion | str, depth: int) -> bool:
    if isinstance(chosen, OperatorVersion):
        return add_node(graph, chosen)
    return depth < 2 and SINCE[chosen][1](graph, lambda inner: grow(inner, 2, depth + 1))


def _ir_versions(opset: int) -> list[int]:
    return [10, 11] if opset >= 22 else [4, 6, 8, 9, 10] if opset > 8 else [3, 4, 8, 10]


@st.composite
def cases(
    draw: Draw, oldest: int = OLDEST, newest: int = NEWEST, most: int = 6, *, empty: bool = False
) -> Case:
    """A model of a few nodes at one of some opsets."""
    opset = draw(st.integers(oldest, newest))
    ir_version = draw(st.sampled_from(_ir_versions(opset)))
    opsets = {"": opset, ML: draw(st.integers(1, 5))}
    graph = Graph(draw, opsets, ir_version, draw(st.integers(0, 2**16)), empty=empty)
    grow(graph, most)
    return Case(model_of(graph), graph.feeds, {each.name: each.data for each in graph.values})
