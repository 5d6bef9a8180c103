"""Random graphs that compute with shapes and constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from opshift.inference.evaluator.rule_table import EVALUATED
from support.execution import Array, run

OPSET = 18
SIZES = [{"N": 3, "M": 2}, {"N": 5, "M": 1}, {"N": 2, "M": 7}]
"""Sizes of the named dimensions in each run."""
TYPES = (np.int64, np.int64, np.int32, np.float32, np.bool_, np.uint8)
EXTREMES = (0, 1, -1, 2, 3, 7, 2**31 - 1, -(2**31))


class RandomGraph:
    """Graph of random nodes; each value is an output, and `values` holds it for each run."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.values: dict[str, list[Array]] = {}
        shapes = (["N", 3], ["N", "M", 4], [2, 3], ["M"], [0, "N"])
        self.inputs = [
            helper.make_tensor_value_info(f"x{number}", TensorProto.FLOAT, shape)
            for number, shape in enumerate(shapes)
        ]

    def model(self, nodes: list[onnx.NodeProto] | None = None) -> onnx.ModelProto:
        nodes = self.nodes if nodes is None else nodes
        outputs = [onnx.ValueInfoProto(name=name) for node in nodes for name in node.output]
        graph = helper.make_graph(nodes, "random", self.inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        name = f"w{len(self.weights)}"
        array = np.asarray(value, dtype)
        self.weights.append(numpy_helper.from_array(array, name))
        self.values[name] = [array] * len(SIZES)
        return name

    def any_constant(self) -> str:
        dims = self.random.integers(0, 4, self.random.integers(0, 3))
        kind = TYPES[self.random.integers(len(TYPES))]
        values = self.random.choice(EXTREMES, dims) if kind is np.int64 else self.random.integers(-3, 6, dims)
        if kind is np.float32:
            values = values / self.random.choice([1, 2, 3])
        return self.constant(np.asarray(values).astype(kind))

    def pick(self, condition: Callable[[Array], bool]) -> str:
        """Return the name of a value that fulfills a condition in the first run; a new constant otherwise."""
        names = [name for name, arrays in self.values.items() if condition(arrays[0])]
        return str(self.random.choice(names[-12:])) if names else self.any_constant()

    def integers(self) -> str:
        return self.pick(lambda array: array.dtype in (np.int64, np.int32))

    def data(self) -> str:
        return self.pick(lambda array: True)

    def of_equal_shape(self, name: str) -> str:
        first = self.values[name][0]
        return self.pick(lambda array: array.dtype == first.dtype)

    def axis(self, name: str) -> int:
        rank = max(self.values[name][0].ndim, 1)
        return int(self.random.integers(-rank, rank))

    def add(self, op_type: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> None:
        """Add a node if onnxruntime runs it with all sizes."""
        names = [f"v{len(self.nodes)}_{position}" for position in range(outputs)]
        node = helper.make_node(op_type, inputs, names, **attributes)
        try:
            model = self.model([*self.nodes, node])
            results = [run(model, self.feeds(sizes))[-outputs:] for sizes in SIZES]
        except Exception:  # onnxruntime has no common class of errors
            return
        self.nodes.append(node)
        self.values.update({name: [each[i] for each in results] for i, name in enumerate(names)})

    def feeds(self, sizes: dict[str, int]) -> dict[str, Array]:
        return {
            each.name: np.zeros(
                [
                    sizes[dim.dim_param] if dim.dim_param else dim.dim_value
                    for dim in each.type.tensor_type.shape.dim
                ],
                np.float32,
            )
            for each in self.inputs
        }


def _add_moving(graph: RandomGraph, op_type: str) -> None:
    random, data = graph.random, graph.data()
    rank = graph.values[data][0].ndim
    if op_type == "Reshape":
        shape = [[-1], [1, -1], [0, -1], [-1, 1, 1], [2, -1], []][random.integers(6)]
        graph.add(op_type, [data, graph.constant(shape)])
    elif op_type == "Gather":
        indices = random.integers(-2, 2, [(), (1,), (2,), (0,), (1, 2)][random.integers(5)])
        graph.add(op_type, [data, graph.constant(indices)], axis=graph.axis(data))
    elif op_type == "Slice":
        bounds = [graph.constant([int(random.choice([0, 1, -1, -2, 9, 2**63 - 1, -(2**63)]))]) for _ in "se"]
        step = graph.constant([int(random.choice([1, 2, -1, -2]))])
        graph.add(op_type, [data, *bounds, graph.constant([graph.axis(data)]), step])
    elif op_type in ("Squeeze", "Unsqueeze"):
        given = [graph.constant([graph.axis(data)])] if op_type == "Unsqueeze" or random.integers(2) else []
        graph.add(op_type, [data, *given])
    elif op_type == "Concat":
        graph.add(
            op_type, [data, graph.of_equal_shape(data), graph.of_equal_shape(data)], axis=graph.axis(data)
        )
    elif op_type == "Split":
        graph.add(op_type, [data], outputs=2, axis=graph.axis(data), num_outputs=2)
    elif op_type == "Tile":
        graph.add(op_type, [data, graph.constant(random.integers(0, 3, rank))])
    elif op_type == "Expand":
        graph.add(op_type, [data, graph.constant([[2, 1], [1], [3, 1, 1], [0, 1], []][random.integers(5)])])
    elif op_type == "Transpose":
        graph.add(
            op_type,
            [data],
            **({"perm": random.permutation(rank).tolist()} if rank and random.integers(2) else {}),
        )
    else:
        graph.add(op_type, [data], **({"axis": graph.axis(data)} if op_type == "Flatten" else {}))


def _add_elementwise(graph: RandomGraph, op_type: str) -> None:
    random = graph.random
    if op_type in ("Not", "And", "Or", "Xor"):
        operands = [
            graph.pick(lambda array: array.dtype == bool) for _ in range(1 if op_type == "Not" else 2)
        ]
        graph.add(op_type, operands)
    elif op_type == "Where":
        first = graph.data()
        graph.add(
            op_type, [graph.pick(lambda array: array.dtype == bool), first, graph.of_equal_shape(first)]
        )
    elif op_type in ("Div", "Mod"):  # a division by zero would end the process
        data = graph.data()
        divisor = graph.constant(random.choice([1, 2, 3, 7]), graph.values[data][0].dtype)
        graph.add(op_type, [data, divisor], **({"fmod": int(random.integers(2))} if op_type == "Mod" else {}))
    elif op_type in ("Neg", "Abs", "Floor", "Ceil"):
        is_float = op_type in ("Floor", "Ceil")
        graph.add(
            op_type, [graph.pick(lambda array: array.dtype == np.float32) if is_float else graph.integers()]
        )
    elif op_type in ("Min", "Max"):
        # onnxruntime compares some int64 below -(2**31) with a scalar wrongly.
        first = graph.pick(lambda array: array.dtype == np.int64 and bool((abs(array) < 2**31).all()))
        kind = graph.values[first][0].dtype
        second = graph.pick(lambda array: array.dtype == kind and bool((abs(array) < 2**31).all()))
        graph.add(op_type, [first, second])
    else:
        first = graph.integers() if random.integers(4) else graph.data()
        graph.add(op_type, [first, graph.of_equal_shape(first)])


def _add_creating(graph: RandomGraph, op_type: str) -> None:
    random = graph.random
    if op_type in ("Shape", "Size"):
        attributes = (
            {"start": int(random.integers(-2, 2))} if op_type == "Shape" and random.integers(2) else {}
        )
        graph.add(op_type, [f"x{random.integers(len(graph.inputs))}"], **attributes)
    elif op_type == "ConstantOfShape":
        value = numpy_helper.from_array(np.array([random.integers(5)], TYPES[random.integers(len(TYPES))]))
        graph.add(op_type, [graph.constant([[2], [], [0, 3], [2, 2]][random.integers(4)])], value=value)
    elif op_type == "Range":
        start, limit = random.integers(-4, 5, 2)
        step = int(random.choice([1, 2, -1, -3]))
        graph.add(op_type, [graph.constant(start), graph.constant(limit), graph.constant(step)])
    elif op_type == "NonZero":
        graph.add(op_type, [graph.integers()])
    elif op_type == "CastLike":
        graph.add(op_type, [graph.integers(), graph.data()])
    else:
        kinds = [TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL, TensorProto.UINT8]
        graph.add(op_type, [graph.data()], to=kinds[random.integers(len(kinds))])


def _add_reduction(graph: RandomGraph, op_type: str) -> None:
    data = graph.integers()
    given = [graph.constant([graph.axis(data)])] if graph.random.integers(2) else []
    graph.add(op_type, [data, *given], keepdims=int(graph.random.integers(2)))


ADDING = {
    "movement": _add_moving,
    "elementwise": _add_elementwise,
    "creation": _add_creating,
}


def random_graph(seed: int) -> RandomGraph:
    graph = RandomGraph(seed)
    for _ in range(3):
        graph.any_constant()
    for op_type in ("Shape", "Shape", *graph.random.choice(sorted(EVALUATED), 16)):
        add = _add_reduction if op_type.startswith("Reduce") else ADDING[EVALUATED[op_type]]
        add(graph, op_type)
    return graph
