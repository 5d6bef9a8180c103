"""Symbolic sizes compare as equal only if they are equal in every run, whatever the names of dimensions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opshift.inference.scope import Scope
from opshift.model.types import Symbol

ScopeFactory = Callable[..., Scope]
NAMES = ("n", "seq", "width", "height", "L", "batch", "T", "frames")
RUNS = (*range(1, 24), 31, 32, 47, 60, 96, 100, 255, 1024)


class RandomWindows:
    """Graph of operators that change the last of three dimensions by random parameters."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.values = ["x"]
        for op_type in self.random.choice(sorted(ADDING), 32):
            ADDING[op_type](self, str(self.random.choice(self.values[:5])))

    def pick(self, *options: Any) -> Any:
        return options[self.random.integers(len(options))]

    def constant(self, *values: Any, shape: tuple[int, ...] | None = None, dtype: Any = np.int64) -> str:
        array = np.array(values, dtype) if shape is None else np.zeros(shape, dtype)
        self.weights.append(numpy_helper.from_array(array, f"w{len(self.weights)}"))
        return f"w{len(self.weights) - 1}"

    def add(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        names = [f"v{len(self.nodes)}_{position}" for position in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, **attributes))
        return names[0]

    def keep(self, value: str) -> None:
        """Register a value with three dimensions as an input of later nodes."""
        self.values.append(value)

    def padding(self) -> dict[str, Any]:
        mode = self.pick("SAME_UPPER", "VALID", "", "", "")
        return {"auto_pad": mode} if mode else {"pads": [self.pick(0, 0, 1, 2), self.pick(0, 0, 1, 2)]}

    def scope(self, scope_of: ScopeFactory, size: int | str) -> Scope:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, size])
        graph = helper.make_graph(self.nodes, "g", [x], [], self.weights)
        return scope_of(graph, [helper.make_opsetid("", 18)])


def _conv(graph: RandomWindows, data: str) -> None:
    weights = graph.constant(shape=(1, 1, graph.pick(1, 2, 3, 4, 7)), dtype=np.float32)
    steps: dict[str, Any] = {"strides": [graph.pick(1, 2, 2, 3, 4)], "dilations": [graph.pick(1, 1, 2)]}
    graph.keep(graph.add("Conv", data, weights, **steps, **graph.padding()))


def _pool(graph: RandomWindows, data: str) -> None:
    window: dict[str, Any] = {"kernel_shape": [graph.pick(1, 2, 3)], "strides": [graph.pick(1, 2, 2, 3)]}
    op_type, is_ceil = graph.pick("MaxPool", "AveragePool"), graph.pick(0, 0, 1)
    graph.keep(graph.add(op_type, data, ceil_mode=is_ceil, **window, **graph.padding()))


def _resize(graph: RandomWindows, data: str) -> None:
    if graph.pick(True, True, False):
        scales = graph.constant(1, 1, graph.pick(0.25, 0.5, 1, 2, 2, 3, 0.3, 1.7), dtype=np.float32)
        return graph.keep(graph.add("Resize", data, "", scales))
    sizes = graph.constant(graph.pick(3, 5), graph.pick(3, 5))
    policy = graph.pick("not_larger", "not_smaller")
    return graph.keep(graph.add("Resize", data, "", "", sizes, axes=[1, 2], keep_aspect_ratio_policy=policy))


def _split(graph: RandomWindows, data: str) -> None:
    graph.add("Split", data, outputs=2, axis=2, num_outputs=2)
    graph.keep(graph.pick(*graph.nodes[-1].output))


def _computed(graph: RandomWindows, data: str) -> None:
    size = graph.add("Shape", data, start=2)
    operator, number = graph.pick("Add", "Mul", "Div", "Div", "Min", "Max", "Mod"), graph.pick(1, 2, 3, 4)
    size = graph.add(operator, size, graph.constant(number))
    shape = graph.add("Concat", graph.constant(1, 1), size, axis=0)
    graph.keep(graph.add("ConstantOfShape", shape))


def _slice(graph: RandomWindows, data: str) -> None:
    table = graph.constant(shape=(1, 1, graph.pick(1, 3, 5)), dtype=np.float32)
    size = graph.add("Shape", data, start=2)
    graph.keep(graph.add("Slice", table, graph.constant(0), size, graph.constant(2)))


ADDING: dict[str, Callable[[RandomWindows, str], None]] = {
    "Conv": _conv,
    "pool": _pool,
    "Resize": _resize,
    "Split": _split,
    "computed size": _computed,
    "cut to a size": _slice,
    "Pad": lambda graph, data: graph.keep(
        graph.add("Pad", data, graph.constant(0, 0, graph.pick(0, 1), 0, 0, graph.pick(0, 1, 3)))
    ),
    "Concat": lambda graph, data: graph.keep(graph.add("Concat", data, graph.pick(*graph.values), axis=2)),
}


def sizes_of(scope: Scope, values: list[str]) -> Iterator[tuple[str, int]]:
    """Yield the known last dimensions of values."""
    for value in values:
        size = (scope.symbolic_shape(value) or (None,))[-1]
        if size is not None:
            yield value, size


@pytest.mark.some_cases(4)
@pytest.mark.parametrize("seed", range(24))
def test_equal_sizes_are_equal_in_every_run(seed: int, scope_of: ScopeFactory) -> None:
    graph = RandomWindows(seed)
    runs = [dict(sizes_of(graph.scope(scope_of, size), graph.values)) for size in RUNS]
    for name in NAMES:
        groups: dict[int, list[str]] = defaultdict(list)
        for value, size in sizes_of(graph.scope(scope_of, name), graph.values):
            groups[size].append(value)
        for size, values in groups.items():
            expected = set() if type(size) is Symbol else {size}
            for run in runs:
                assert len(expected | {run[value] for value in values if value in run}) <= 1, (name, values)
        assert len(groups) > len(graph.values) // 4
        assert max(map(len, groups.values())) > 1
