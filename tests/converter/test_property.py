"""Random graphs of operators that changed since opset 9: converted, they give what they gave before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import NodeProto, TensorProto, helper
from support.running import Array, Feeds, assert_equal, build, opset_of, run

from opshift.converter.convert import convert_version

SOURCE = 9
Shape = tuple[int, ...]


class Value(NamedTuple):
    """A float tensor that the graph has made so far."""

    name: str
    shape: Shape

    @property
    def rank(self) -> int:
        """The number of its dimensions."""
        return len(self.shape)


class Graph:
    """A graph that grows by one operator at a time; every new value may be read by the next."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], shape: Shape) -> None:
        self._draw = draw
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, Array] = {}
        self.values = [Value("x", shape)]
        self._made = 0

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self._draw(strategy)

    def pick(self, least: int = 0, most: int = 5) -> Value | None:
        """A value of a rank in these limits."""
        fitting = [each for each in self.values if least <= each.rank <= most]
        found: Value | None = self.draw(st.sampled_from(fitting)) if fitting else None
        return found

    def axis(self, value: Value) -> int:
        found: int = self.draw(st.integers(0, value.rank - 1))
        return found

    def add(
        self, op_type: str, inputs: Sequence[str], shapes: Sequence[Shape | None], **stated: Any
    ) -> tuple[str, ...]:
        """Add a node; of an output without a shape no other node is to read."""
        outputs = tuple(f"v{self._made + i}" for i in range(len(shapes)))
        self._made += len(outputs)
        self.nodes.append(helper.make_node(op_type, inputs, outputs, f"n{len(self.nodes)}", **stated))
        named = zip(outputs, shapes, strict=True)
        self.values += [Value(name, shape) for name, shape in named if shape is not None]
        return outputs

    def weight(self, array: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(array)
        return name


def unary(graph: Graph) -> None:
    value = graph.pick()
    assert value is not None
    graph.add(graph.draw(st.sampled_from(["Relu", "Tanh", "Neg", "Sigmoid"])), [value.name], [value.shape])


def add(graph: Graph) -> None:
    one = graph.pick()
    assert one is not None
    other = graph.draw(st.sampled_from([each for each in graph.values if each.shape == one.shape]))
    graph.add("Add", [one.name, other.name], [one.shape])


def clip(graph: Graph) -> None:
    value = graph.pick()
    assert value is not None
    bounds = graph.draw(st.sampled_from([{}, {"min": -0.5}, {"max": 0.5}, {"min": -0.25, "max": 0.75}]))
    graph.add("Clip", [value.name], [value.shape], **bounds)


def dropout(graph: Graph) -> None:
    value = graph.pick()
    assert value is not None
    graph.add("Dropout", [value.name], [value.shape], ratio=0.3)


def softmax(graph: Graph) -> None:
    value = graph.pick(1)
    if value is not None:
        op_type = graph.draw(st.sampled_from(["Softmax", "LogSoftmax"]))
        graph.add(op_type, [value.name], [value.shape], axis=graph.axis(value))


def cut(graph: Graph) -> None:
    value = graph.pick(1)
    if value is None:
        return
    axis = graph.axis(value)
    start = graph.draw(st.integers(-value.shape[axis], value.shape[axis] - 1))
    end = graph.draw(st.sampled_from([value.shape[axis], 1_000, 2**63 - 1]))
    size = -start if start < 0 else value.shape[axis] - start
    shape = (*value.shape[:axis], size, *value.shape[axis + 1 :])
    graph.add("Slice", [value.name], [shape], starts=[start], ends=[end], axes=[axis])


def squeeze(graph: Graph) -> None:
    value = graph.pick(1)
    if value is None or 1 not in value.shape:
        return
    axis = graph.draw(st.sampled_from([i for i, size in enumerate(value.shape) if size == 1]))
    graph.add("Squeeze", [value.name], [(*value.shape[:axis], *value.shape[axis + 1 :])], axes=[axis])


def unsqueeze(graph: Graph) -> None:
    value = graph.pick(0, 4)
    if value is not None:
        axis = graph.draw(st.integers(0, value.rank))
        graph.add("Unsqueeze", [value.name], [(*value.shape[:axis], 1, *value.shape[axis:])], axes=[axis])


def pad(graph: Graph) -> None:
    value = graph.pick(1)
    if value is None:
        return
    pads = graph.draw(st.lists(st.integers(0, 1), min_size=2 * value.rank, max_size=2 * value.rank))
    shape = tuple(size + pads[i] + pads[value.rank + i] for i, size in enumerate(value.shape))
    graph.add("Pad", [value.name], [shape], pads=pads, value=0.5)


def split(graph: Graph) -> None:
    value = graph.pick(1)
    if value is None:
        return
    axis = graph.axis(value)
    size = value.shape[axis]
    if size < 2:
        return
    first = size // 2 if size % 2 == 0 and graph.draw(st.booleans()) else graph.draw(st.integers(1, size - 1))
    sizes = [first, size - first]
    shapes = [(*value.shape[:axis], each, *value.shape[axis + 1 :]) for each in sizes]
    stated = {} if sizes[0] == sizes[1] else {"split": sizes}
    graph.add("Split", [value.name], shapes, axis=axis, **stated)


def reduce(graph: Graph) -> None:
    value = graph.pick(1)
    if value is None:
        return
    axis, keepdims = graph.axis(value), graph.draw(st.integers(0, 1))
    shape = (*value.shape[:axis], *[1] * keepdims, *value.shape[axis + 1 :])
    op_type = graph.draw(st.sampled_from(["ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2"]))
    graph.add(op_type, [value.name], [shape], axes=[axis], keepdims=keepdims)


def upsample(graph: Graph) -> None:
    value = graph.pick(4, 4)
    if value is None:
        return
    factor = graph.draw(st.sampled_from([1.0, 1.5, 2.0]))
    mode = graph.draw(st.sampled_from(["nearest", "linear"]))
    shape = (*value.shape[:3], int(value.shape[3] * factor))
    graph.add(
        "Upsample", [value.name, graph.weight(np.array([1, 1, 1, factor], np.float32))], [shape], mode=mode
    )


def cast(graph: Graph) -> None:
    value = graph.pick()
    assert value is not None
    (double,) = graph.add("Cast", [value.name], [None], to=TensorProto.DOUBLE)
    graph.add("Cast", [double], [value.shape], to=TensorProto.FLOAT)


def largest(graph: Graph) -> None:
    value = graph.pick(1)
    if value is None:
        return
    axis = graph.axis(value)
    shape = (*value.shape[:axis], 1, *value.shape[axis + 1 :])
    graph.add("TopK", [value.name], [shape, None], axis=axis, k=1)


OPERATORS = (
    unary, add, clip, dropout, softmax, cut, squeeze, unsqueeze,
    pad, split, reduce, upsample, cast, largest,
)  # fmt: skip
SHAPES: tuple[Shape, ...] = ((3,), (2, 3), (1, 4, 2), (1, 2, 3, 4))


@st.composite
def cases(draw: Callable[[st.SearchStrategy[Any]], Any]) -> tuple[onnx.ModelProto, Feeds, int]:
    """A model, what to run it on, and where to take it."""
    graph = Graph(draw, draw(st.sampled_from(SHAPES)))
    for operator in draw(st.lists(st.sampled_from(OPERATORS), min_size=2, max_size=8)):
        operator(graph)
    feeds = {"x": np.random.default_rng(0).normal(size=graph.values[0].shape).astype(np.float32)}
    outputs = [each.name for each in graph.values[1:]] or ["x"]
    model = build(graph.nodes, feeds, outputs, SOURCE, initializers=graph.weights, ir_version=4)
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return model, feeds, draw(st.integers(SOURCE + 1, 26))


@given(cases())
@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_a_random_graph_gives_the_same_before_and_after(case: tuple[onnx.ModelProto, Feeds, int]) -> None:
    model, feeds, target = case
    result = convert_version(model, target)
    assert opset_of(result) == target
    assert_equal(run(result, feeds), run(model, feeds))


@given(cases())
@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_a_way_in_two_steps_gives_the_same_as_one(case: tuple[onnx.ModelProto, Feeds, int]) -> None:
    model, feeds, target = case
    halfway = convert_version(model, (SOURCE + target) // 2)
    result = convert_version(halfway, target)
    assert_equal(run(result, feeds), run(model, feeds))
