"""Folded random models compute the same outputs in onnxruntime, also with undeclared sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.execution import Array, run
from support.shape_computations import OPSET, SIZES, RandomGraph, random_graph

from opshift import simplify

OTHER_SIZES = [{"N": 1, "M": 1}, {"N": 0, "M": 3}, {"N": 4, "M": 4}]
FLAG = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])


def results(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array] | None:
    """Return the outputs; `None` if onnxruntime refuses the model or the sizes."""
    try:
        return [np.asarray(each) for each in run(model, feeds)]
    except Exception:  # onnxruntime has no common class of errors
        return None


def assert_same_outputs(
    before: onnx.ModelProto, after: onnx.ModelProto, feeds: Sequence[dict[str, Array]]
) -> int:
    """Assert equal bits for all feeds with which the original runs, and return their number."""
    names = [[value.name for value in each.graph.output] for each in (before, after)]
    assert names[0] == names[1]
    count = 0
    for each in feeds:
        expected = results(before, each)
        if expected is None:
            continue
        found = run(after, each)
        for actual, wanted in zip(map(np.asarray, found), expected, strict=True):
            assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape)
            assert actual.tobytes() == wanted.tobytes()
        count += 1
    return count


def model_of(graph: RandomGraph, nodes: list[onnx.NodeProto], outputs: list[str], **more: Any) -> Any:
    values = [onnx.ValueInfoProto(name=name) for name in outputs]
    made = helper.make_graph(nodes, "random", [FLAG, *graph.inputs], values, graph.weights)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("local", 1)]
    return helper.make_model(made, opset_imports=opsets, **more)


def chosen_outputs(graph: RandomGraph) -> list[str]:
    names = [name for node in graph.nodes for name in node.output]
    return sorted(set(graph.random.choice(names, 4).tolist()))


def plain(graph: RandomGraph) -> onnx.ModelProto:
    return model_of(graph, graph.nodes, chosen_outputs(graph), ir_version=8)


def overridable(graph: RandomGraph) -> onnx.ModelProto:
    model = plain(graph)
    for tensor in graph.weights[:: graph.random.integers(1, 3)]:
        model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return model


def old(graph: RandomGraph) -> onnx.ModelProto:
    model = plain(graph)
    model.ir_version = 3
    for tensor in graph.weights:
        model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return model


def halves(graph: RandomGraph) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto], list[str]]:
    """Return the first nodes, the others, and some outputs of the others."""
    split = len(graph.nodes) // 2
    inner = [name for node in graph.nodes[split:] for name in node.output]
    return graph.nodes[:split], graph.nodes[split:], sorted(set(graph.random.choice(inner, 3).tolist()))


def renamed(nodes: list[onnx.NodeProto], prefix: str) -> list[onnx.NodeProto]:
    own = {name for node in nodes for name in node.output}
    copies = []
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for field in (copy.input, copy.output):
            field[:] = [prefix + name if name in own else name for name in field]
        copies.append(copy)
    return copies


def with_branches(graph: RandomGraph) -> onnx.ModelProto:
    first, second, outputs = halves(graph)
    branches = {}
    for branch, prefix in (("then_branch", "t_"), ("else_branch", "e_")):
        values = [onnx.ValueInfoProto(name=prefix + name) for name in outputs]
        nodes = renamed(second if prefix == "t_" else second[::1], prefix)
        branches[branch] = helper.make_graph(nodes, branch, [], values)
    node = helper.make_node("If", ["flag"], outputs, **branches)
    return model_of(graph, [*first, node], outputs, ir_version=8)


def with_function(graph: RandomGraph) -> onnx.ModelProto:
    first, second, outputs = halves(graph)
    own = {name for node in second for name in node.output}
    read = list(dict.fromkeys(name for node in second for name in node.input if name and name not in own))
    imports = [helper.make_opsetid("", OPSET)]
    function = helper.make_function("local", "second", read, outputs, second, imports)
    node = helper.make_node("second", read, outputs, domain="local")
    return model_of(graph, [*first, node], outputs, ir_version=8, functions=[function])


def feeds_of(graph: RandomGraph, model: onnx.ModelProto) -> list[dict[str, Array]]:
    found = [
        {**graph.feeds(sizes), "flag": np.array(position % 2 == 0)}
        for position, sizes in enumerate([*SIZES, *OTHER_SIZES])
    ]
    names = {value.name for value in model.graph.input}
    overridden = {
        tensor.name: np.asarray(1 - onnx.numpy_helper.to_array(tensor).astype(np.int64)).astype(
            onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        )
        for tensor in graph.weights
        if tensor.name in names and model.ir_version > 3 and graph.random.integers(3) == 0
    }
    return [*found, *({**each, **overridden} for each in found)]


FORMS = {each.__name__: each for each in (plain, overridable, old, with_branches, with_function)}


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("form", FORMS)
def test_folded_shape_computations(form: str) -> None:
    compared = removed = 0
    for seed in range(30):
        graph = random_graph(seed + 1000)
        if not graph.nodes:
            continue
        model = FORMS[form](graph)
        content = model.SerializeToString()
        folded = simplify(model)
        assert model.SerializeToString() == content
        assert [each.name for each in folded.graph.input] == [each.name for each in model.graph.input]
        compared += assert_same_outputs(model, folded, feeds_of(graph, model))
        removed += len(model.graph.node) - len(folded.graph.node)
        assert simplify(folded).SerializeToString() == folded.SerializeToString()
    assert compared > 100
    assert removed > 0


class RandomNetwork(RandomGraph):
    """Graph of nodes on floats, many of which change nothing or compute sizes."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        for each in self.inputs:
            self.values[each.name] = [self.feeds(sizes)[each.name] for sizes in SIZES]

    def feeds(self, sizes: dict[str, int]) -> dict[str, Array]:
        random = np.random.default_rng(sum(sizes.values()))
        zeros = super().feeds(sizes)
        return {name: np.asarray(random.normal(size=each.shape), np.float32) for name, each in zeros.items()}

    def tensor(self) -> str:
        return self.pick(lambda array: array.dtype == np.float32)

    def last(self) -> str:
        return self.nodes[-1].output[0] if self.nodes else "x0"


def _reshape(graph: RandomNetwork, data: str, rank: int) -> None:
    graph.add("Shape", [data])
    shape = graph.last()
    if graph.random.integers(2) and rank:
        graph.add("Gather", [shape, graph.constant([0])])
        first = graph.last()
        graph.add("Slice", [shape, graph.constant([1]), graph.constant([9])])
        graph.add("Concat", [first, graph.last()], axis=0)
        shape = graph.last()
    graph.add(["Reshape", "Expand"][graph.random.integers(2)], [data, shape])


def _slice(graph: RandomNetwork, data: str, rank: int) -> None:
    start, end, step = [(0, 2**63 - 1, 1), (-1, -(2**63), -1), (0, 2, 1)][graph.random.integers(3)]
    bounds = [graph.constant([each]) for each in (start, end, 0, step)]
    graph.add("Slice", [data, *bounds])


def _pad(graph: RandomNetwork, data: str, rank: int) -> None:
    pads = [0] * 2 * rank
    if rank and graph.random.integers(2):
        pads[0], pads[rank] = 1, -1
    graph.add("Pad", [data, graph.constant(pads)])


def _transpose(graph: RandomNetwork, data: str, rank: int) -> None:
    order = list(range(rank)) if graph.random.integers(2) else graph.random.permutation(rank).tolist()
    graph.add("Transpose", [data], perm=order)


def _repeat(graph: RandomNetwork, data: str, rank: int) -> None:
    if graph.nodes:
        node = graph.nodes[graph.random.integers(len(graph.nodes))]
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        graph.add(node.op_type, list(node.input), len(node.output), **attributes)


ADDING: dict[str, Callable[[RandomNetwork, str, int], None]] = {
    "Reshape": _reshape,
    "Slice": _slice,
    "Pad": _pad,
    "Transpose": _transpose,
    "repeat": _repeat,
    "Identity": lambda graph, data, rank: graph.add("Identity", [data]),
    "Dropout": lambda graph, data, rank: graph.add(
        "Dropout", [data], outputs=int(graph.random.integers(1, 3))
    ),
    "Cast": lambda graph, data, rank: graph.add("Cast", [data], to=int(graph.random.choice([1, 1, 11]))),
    "CastLike": lambda graph, data, rank: graph.add("CastLike", [data, graph.data()]),
    "Concat": lambda graph, data, rank: graph.add("Concat", [data], axis=graph.axis(data)),
    "Sum": lambda graph, data, rank: graph.add("Sum", [data]),
    "Max": lambda graph, data, rank: graph.add("Max", [data]),
    "Tile": lambda graph, data, rank: graph.add("Tile", [data, graph.constant([1] * rank)]),
    "Flatten": lambda graph, data, rank: graph.add("Flatten", [data]),
    "Squeeze": lambda graph, data, rank: graph.add("Squeeze", [data]),
    "Relu": lambda graph, data, rank: graph.add("Relu", [data]),
    "Add": lambda graph, data, rank: graph.add("Add", [data, graph.tensor()]),
    "Mul": lambda graph, data, rank: graph.add("Mul", [data, graph.constant(0.5, np.float32)]),
    "Neg": lambda graph, data, rank: graph.add("Neg", [data]),
}


def random_network(seed: int) -> RandomNetwork:
    graph = RandomNetwork(seed)
    for op_type in graph.random.choice(sorted(ADDING), 18):
        data = graph.tensor()
        ADDING[op_type](graph, data, graph.values[data][0].ndim)
    return graph


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("form", FORMS)
def test_folded_networks(form: str) -> None:
    compared = removed = 0
    for seed in range(20):
        graph = random_network(seed)
        model = FORMS[form](graph)
        folded = simplify(model)
        compared += assert_same_outputs(model, folded, feeds_of(graph, model))
        removed += len(model.graph.node) - len(folded.graph.node)
    assert compared > 60
    assert removed > 0
