"""Every step up that changes a node has an example here, converted over that step alone and run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.forests import ML, Forest, classifier, data, regressor, votes
from support.running import Array, build

from opshift import default_registry
from opshift.adapters.table import adapter_table
from opshift.converter.errors import Refusal
from opshift.converter.lineage import lineage
from opshift.registry.names import DEFAULT_DOMAIN

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
FIRST_TO_RUN = 7
"""Runtimes know most operators from this opset on; what stops below is run at a later one."""


class Step(NamedTuple):
    """The version of an operator that a step leaves, and the opset at which it arrives."""

    domain: str
    op: str
    version: int
    opset: int

    def __str__(self) -> str:
        home = "" if self.domain == DEFAULT_DOMAIN else f"{self.domain}."
        return f"{home}{self.op} {self.version} -> {self.opset}"


class Example(NamedTuple):
    """A model just below the step; `expected` where no runtime runs it, `reason` where it is refused."""

    step: Step
    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    expected: Sequence[Array] | None = None
    reason: str = ""


def _example(
    op: str,
    version: int,
    opset: int,
    feeds: Mapping[str, Any],
    attributes: Mapping[str, Any] | None = None,
    expected: Any = None,
    *,
    outputs: Mapping[str, int] | None = None,
    inputs: Sequence[str] | None = None,
    constants: str = "",
    reason: str = "",
    domain: str = DEFAULT_DOMAIN,
) -> Example:
    """An example of one node; `constants` lists the feeds that are initializers."""
    arrays = {name: np.asarray(each) for name, each in feeds.items()}
    given = {name: each for name, each in arrays.items() if name in constants.split()}
    open_ = {name: each for name, each in arrays.items() if name not in given}
    results = outputs or {"y": TensorProto.FLOAT}
    wire = "" if domain == DEFAULT_DOMAIN else domain
    node = helper.make_node(
        op,
        list(feeds) if inputs is None else inputs,
        list(results),
        name="node",
        domain=wire,
        **(attributes or {}),
    )
    named = {name: element for name, element in results.items() if name}
    model = build([node], open_, named, {wire: opset - 1}, initializers=given)
    known = expected if expected is None or isinstance(expected, list) else [np.asarray(expected)]
    return Example(Step(domain, op, version, opset), model, open_, known, reason)


def _floats(values: Any) -> Array:
    return np.array(values, np.float32)


X = np.array([[-1.5, 0, 2], [0.5, -0.25, 1]], np.float32)
POSITIVE = np.abs(X) + np.float32(0.5)
BITS = X > 0
RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((1, 2, 4, 6)).astype(np.float32)
CHANNELS = np.array([0.5, 2], np.float32)
STATISTICS: dict[str, Array] = {"s": CHANNELS, "b": CHANNELS - 1, "m": CHANNELS / 4, "v": CHANNELS}


def _column(values: Array) -> Array:
    return values.reshape(-1, 1, 1)


def _normal(image: Array) -> Array:
    """BatchNormalization with `STATISTICS`."""
    scale, bias, mean, variance = map(_column, STATISTICS.values())
    return np.asarray((image - mean) / np.sqrt(variance + np.float32(1e-5)) * scale + bias)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


UNARY: dict[str, tuple[Array, Callable[[Array], Any]]] = {
    "Abs": (X, np.abs),
    "Ceil": (X, np.ceil),
    "Elu": (X, lambda x: np.where(x < 0, np.expm1(x), x)),
    "Exp": (X, np.exp),
    "Floor": (X, np.floor),
    "HardSigmoid": (X, lambda x: np.clip(np.float32(0.2) * x + np.float32(0.5), 0, 1)),
    "LeakyRelu": (X, lambda x: np.where(x < 0, np.float32(0.01) * x, x)),
    "Log": (POSITIVE, np.log),
    "Neg": (X, np.negative),
    "Reciprocal": (POSITIVE, np.reciprocal),
    "Relu": (X, lambda x: np.maximum(x, 0)),
    "Selu": (X, lambda x: np.float32(1.0507) * np.where(x > 0, x, np.float32(1.6732) * np.expm1(x))),
    "Sigmoid": (X, _sigmoid),
    "Sqrt": (POSITIVE, np.sqrt),
    "Tanh": (X, np.tanh),
}
VARIADIC: dict[str, Callable[[Array, Array], Any]] = {
    "Max": np.maximum,
    "Mean": lambda a, b: (a + b) / 2,
    "Min": np.minimum,
    "Sum": np.add,
}
ARITHMETIC: dict[str, Callable[[Array, Array], Any]] = {
    "Add": np.add,
    "Div": np.divide,
    "Mul": np.multiply,
    "Sub": np.subtract,
}
LOGIC: dict[str, tuple[Array, Callable[[Array, Array], Any]]] = {
    "And": (BITS, np.logical_and),
    "Equal": (X.astype(np.int32), np.equal),
    "Greater": (X, np.greater),
    "Less": (X, np.less),
    "Or": (BITS, np.logical_or),
    "Pow": (POSITIVE, np.power),
    "Xor": (BITS, np.logical_xor),
}


def consumed_inputs() -> Iterator[Example]:
    """Version 1 said which inputs may be overwritten."""
    consumed = {"consumed_inputs": [0]}
    for op, (given, function) in UNARY.items():
        yield _example(op, 1, 6, {"x": given}, consumed, function(given))
    for op, combine in (VARIADIC | ARITHMETIC).items():
        stated = {"consumed_inputs": [0, 0]}
        yield _example(op, 1, 6, {"a": X, "b": POSITIVE}, stated, combine(X, POSITIVE))
    yield _example("Clip", 1, 6, {"x": X}, {**consumed, "min": 0.0}, np.maximum(X, 0))
    yield _example("Dropout", 1, 6, {"x": X}, {**consumed, "is_test": 1}, X)
    slopes = {"x": X, "s": _floats([0.5])}
    yield _example("PRelu", 1, 6, slopes, {"consumed_inputs": [0, 0]}, np.where(X < 0, X / 2, X))
    five = {"consumed_inputs": [0, 0, 0, 1, 1], "is_test": 1}
    yield _example("BatchNormalization", 1, 6, {"x": IMAGE, **STATISTICS}, five, _normal(IMAGE))
    centred = IMAGE - IMAGE.mean((2, 3), keepdims=True)
    normal = centred / np.sqrt((centred**2).mean((2, 3), keepdims=True) + np.float32(1e-5))
    expected = normal * _column(CHANNELS) + _column(CHANNELS)
    feeds = {"x": IMAGE, "s": CHANNELS, "b": CHANNELS}
    yield _example("InstanceNormalization", 1, 6, feeds, {"consumed_inputs": [0, 0, 0]}, expected)


def broadcasting() -> Iterator[Example]:
    """Version 7 broadcasts as numpy does."""
    rows = np.array([2, -1], np.float32)
    along = {"broadcast": 1, "axis": 0}
    for op, function in ARITHMETIC.items():
        yield _example(op, 6, 7, {"a": X, "b": rows}, along, function(X, rows[:, None]))
    for op, (first, combine) in LOGIC.items():
        second = rows.astype(first.dtype)
        expected = np.asarray(combine(first, second[:, None]))
        outputs = {"y": helper.np_dtype_to_tensor_dtype(expected.dtype)}
        yield _example(op, 1, 7, {"a": first, "b": second}, along, expected, outputs=outputs)
    slopes = {"x": IMAGE, "s": CHANNELS}
    yield _example("PRelu", 6, 7, slopes, {}, np.where(IMAGE < 0, IMAGE * _column(CHANNELS), IMAGE))
    gemm = {"a": X, "b": X.T.copy(), "c": rows}
    yield _example("Gemm", 6, 7, gemm, {"broadcast": 1, "alpha": 0.5}, X @ X.T / 2 + rows)


def inference() -> Iterator[Example]:
    """How training and inference are told."""
    feeds = {"x": IMAGE, **STATISTICS}
    yield _example("BatchNormalization", 6, 7, feeds, {"is_test": 1}, _normal(IMAGE))
    elements = {"x": X, **dict.fromkeys("sbmv", POSITIVE[0])}
    yield _example("BatchNormalization", 7, 9, elements, {"spatial": 0})
    yield _example("BatchNormalization", 9, 14, feeds)
    yield _example("Dropout", 6, 7, {"x": X}, {"is_test": 1}, X)
    yield _example("Dropout", 7, 10, {"x": X}, {}, outputs={"y": 1, "mask": 1})
    yield _example("Dropout", 10, 12, {"x": X}, {"ratio": 0.25})


def attributes_that_change() -> Iterator[Example]:
    """Other names, values and defaults."""
    both = {"a": X, "b": X}
    yield _example("Concat", 1, 4, both, {}, np.concatenate([X, X], 1))
    yield _example("Cast", 1, 6, {"x": X}, {"to": "INT32"}, X.astype(np.int32), outputs={"y": 6})
    paddings = {"paddings": [0, 1, 0, 2], "value": 3.0}
    yield _example("Pad", 1, 2, {"x": X}, paddings, np.pad(X, ((0, 0), (1, 2)), constant_values=3))
    boxes = {"x": IMAGE, "r": _floats([[0, 0, 4, 3]]), "i": np.array([0])}
    yield _example("RoiAlign", 10, 16, boxes, {"output_height": 2, "output_width": 2})
    grid = {"x": IMAGE, "g": RANDOM.uniform(-1, 1, (1, 2, 3, 2)).astype(np.float32)}
    yield _example("GridSample", 16, 20, grid, {"mode": "bicubic"})
    pool = {"kernel_shape": [4, 6], "p": 3.0}
    cubes = (np.abs(IMAGE) ** 3).sum((2, 3), keepdims=True) ** np.float32(1 / 3)
    yield _example("LpPool", 1, 2, {"x": IMAGE}, pool, cubes)
    yield _example("GlobalLpPool", 1, 2, {"x": IMAGE}, {"p": 3.0}, cubes)
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        yield _example(op, 11, 13, {"x": IMAGE})
    groups = {"x": IMAGE, "s": _floats([2]), "b": _floats([1])}
    yield _example("GroupNormalization", 18, 21, groups, {"num_groups": 1})


def attributes_that_become_inputs() -> Iterator[Example]:
    """Lists that may be computed from some version on."""
    yield _example("Reshape", 1, 5, {"x": X}, {"shape": [3, -1]}, X.reshape(3, 2))
    tiles = {"x": X, "t": _floats([2]), "a": _floats([1])}
    yield _example("Tile", 1, 6, tiles, {}, np.concatenate([X, X], 1), constants="t a")
    yield _example("TopK", 1, 10, {"x": X}, {"k": 2}, outputs={"y": 1, "i": TensorProto.INT64})
    yield _example("Slice", 1, 10, {"x": X}, {"starts": [1], "ends": [3], "axes": [1]})
    yield _example("Pad", 2, 11, {"x": X}, {"pads": [0, 1, 0, -1], "value": 3.0})
    yield _example("Clip", 6, 11, {"x": X}, {"min": -0.5})
    yield _example("Split", 1, 2, {"x": X}, {"axis": 0}, [X[:1], X[1:]], outputs={"y": 1, "z": 1})
    yield _example("Split", 11, 13, {"x": X}, {"split": [1, 2], "axis": 1}, outputs={"y": 1, "z": 1})
    yield _example("Split", 13, 18, {"x": X}, {"axis": 0}, outputs={"y": 1, "z": 1})
    yield _example("Squeeze", 11, 13, {"x": IMAGE}, {"axes": [0]})
    yield _example("Unsqueeze", 11, 13, {"x": X}, {"axes": [0, -1]})
    yield _example("ReduceSum", 11, 13, {"x": X}, {"axes": [1]})
    for op in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare"):
        yield _example(f"Reduce{op}", 13, 18, {"x": POSITIVE}, {"axes": [-1], "keepdims": 0})
    yield _example("DFT", 17, 20, {"x": IMAGE[..., :2]}, {})


def resizing() -> Iterator[Example]:
    """The forerunners of Resize."""
    factors = {"height_scale": 2.0, "width_scale": 3.0}
    repeated = IMAGE.repeat(2, 2).repeat(3, 3)
    yield _example("Upsample", 1, 7, {"x": IMAGE}, factors, repeated)
    yield _example("Upsample", 7, 9, {"x": IMAGE}, {"scales": [1.0, 1.0, 2.0, 1.5]})
    scales = {"x": IMAGE, "s": _floats([1, 1, 1.3, 1.3])}
    yield _example("Upsample", 9, 10, scales, {"mode": "linear"})
    yield _example("Resize", 10, 11, scales, {})
    sizes = {"x": IMAGE, "none": np.zeros(0, np.float32), "s": np.array([1, 2, 3, 8])}
    yield _example("Resize", 11, 13, sizes, {}, inputs=["x", "none", "none", "s"], constants="none")


def _weights(gates: int, hidden: int = 2) -> dict[str, Array]:
    shapes = {"x": (3, 1, 3), "w": (1, gates * hidden, 3), "r": (1, gates * hidden, hidden)}
    return {name: RANDOM.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}


def _run_rnn(x: Array, w: Array, r: Array) -> Array:
    state = np.zeros((1, 2), np.float32)
    for each in x:
        state = np.tanh(each @ w[0].T + state @ r[0].T)
    return state[None]


def _run_gru(x: Array, w: Array, r: Array) -> Array:
    """Gates in the order update, reset, hidden."""
    state = np.zeros((1, 2), np.float32)
    wz, wr, wh = np.split(w[0], 3)
    rz, rr, rh = np.split(r[0], 3)
    for each in x:
        update, reset = _sigmoid(each @ wz.T + state @ rz.T), _sigmoid(each @ wr.T + state @ rr.T)
        hidden = np.tanh(each @ wh.T + (reset * state) @ rh.T)
        state = (1 - update) * hidden + update * state
    return state[None]


def _run_lstm(x: Array, w: Array, r: Array) -> Array:
    """Gates in the order input, output, forget, cell."""
    state = cell = np.zeros((1, 2), np.float32)
    for each in x:
        given, shown, kept, new = np.split(each @ w[0].T + state @ r[0].T, 4, 1)
        cell = _sigmoid(kept) * cell + _sigmoid(given) * np.tanh(new)
        state = _sigmoid(shown) * np.tanh(cell)
    return state[None]


def recurrent() -> Iterator[Example]:
    """`output_sequence` never told more than the outputs do."""
    outputs = {"": 1, "h": 1}
    stated = {"hidden_size": 2, "output_sequence": 0}
    rnn, gru, lstm = _weights(1), _weights(3), _weights(4)
    yield _example("RNN", 1, 7, rnn, stated, _run_rnn(**rnn), outputs=outputs)
    yield _example("GRU", 1, 3, gru, stated, _run_gru(**gru), outputs=outputs)
    yield _example("GRU", 3, 7, gru, stated, _run_gru(**gru), outputs=outputs)
    yield _example("LSTM", 1, 7, lstm, stated, _run_lstm(**lstm), outputs=outputs)


def _body() -> onnx.GraphProto:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "srto"]
    nodes = [helper.make_node("Add", ["s", "r"], ["t"]), helper.make_node("Neg", ["t"], ["o"])]
    return helper.make_graph(nodes, "body", values[:2], values[2:])


def control() -> Iterator[Example]:
    """Scan lost its batch."""
    feeds = {"start": X[:1], "rows": X[None]}
    attributes = {"body": _body(), "num_scan_inputs": 1}
    outputs = {"total": 1, "sums": 1}
    yield _example("Scan", 8, 9, feeds, attributes, inputs=["", "start", "rows"], outputs=outputs)


def replaced() -> Iterator[Example]:
    """Operators that left the set, and what stands for them."""
    yield _example("Affine", 1, 10, {"x": X}, {"alpha": 2.0, "beta": 1.0})
    yield _example("Crop", 1, 10, {"x": IMAGE}, {"border": [1, 0, 2, 1]})
    yield _example("ImageScaler", 1, 10, {"x": IMAGE}, {"scale": 2.0, "bias": [1.0, -1.0]})
    yield _example("ParametricSoftplus", 1, 10, {"x": X}, {"alpha": 2.0, "beta": 0.5})
    yield _example("Scale", 1, 10, {"x": X}, {"scale": 3.0})
    yield _example("ScaledTanh", 1, 10, {"x": X}, {"alpha": 2.0, "beta": 0.5})
    yield _example("MeanVarianceNormalization", 1, 9, {"x": IMAGE})
    bounds = {"x": X, "s": np.array([1]), "e": np.array([3]), "a": np.array([1])}
    yield _example("DynamicSlice", 1, 10, bounds)
    filled = {"shape": [2, 2], "value": 1.5}
    yield _example("ConstantFill", 1, 9, {}, filled, np.full((2, 2), 1.5, np.float32))
    given = {"shape": [2], "values": [1.0, 2.0]}
    yield _example("GivenTensorFill", 1, 10, {}, given, _floats([1, 2]))
    scattered = {"x": X, "i": np.array([[2, 0], [1, 2]]), "u": POSITIVE[:, :2]}
    yield _example("Scatter", 9, 11, scattered, {"axis": 1})
    yield _example("ATen", 1, 10, {"x": X}, {"operator": "cumsum"}, reason="a function of PyTorch")
    unit = {"p": X[None], "h": X[None], "b": X[0], "n": X[0]}
    yield _example("GRUUnit", 1, 10, unit, {}, reason="gives no formula")


def guarded() -> Iterator[Example]:
    """Versions that take fewer types."""
    yield _example("Erf", 9, 13, {"x": X})
    for op in ("ReduceLogSum", "ReduceLogSumExp"):
        wide = POSITIVE if op == "ReduceLogSum" else np.exp(POSITIVE)
        yield _example(op, 18, 28, {"x": POSITIVE}, {}, np.log(wide.sum(keepdims=True)))


def classical() -> Iterator[Example]:
    """ai.onnx.ml."""
    numbers = {"x": np.array([[0, 1], [5, 0]])}
    names = {"classes_strings": ["a", "b"], "default_string": "none"}
    yield _example("LabelEncoder", 1, 2, numbers, names, outputs={"y": TensorProto.STRING}, domain=ML)
    forest, opsets = Forest(votes([0, 1]), trees=2, depth=2), {ML: 4, "": 17}
    feeds = {"x": data()}
    kept = Step(ML, "TreeEnsembleRegressor", 3, 5)
    yield Example(kept, regressor(forest, data(), 2, opsets), feeds)
    forest = Forest(votes([0, 1, 2]), trees=2, depth=2)
    kept = Step(ML, "TreeEnsembleClassifier", 3, 5)
    yield Example(kept, classifier(forest, data(), [3, 4, 5], opsets), feeds)


@cache
def _examples() -> dict[Step, Example]:
    groups = (
        consumed_inputs,
        broadcasting,
        inference,
        attributes_that_change,
        attributes_that_become_inputs,
        resizing,
        recurrent,
        control,
        replaced,
        guarded,
        classical,
    )
    return {example.step: example for group in groups for example in group()}


def _steps() -> list[Step]:
    """Every step up but those that leave all nodes as they are."""
    found = []
    for operator in default_registry().operators():
        graph = lineage(operator, adapter_table())
        for pair in graph.edges:
            edge = graph.edges[pair]["step"]
            if edge.opset > edge.source.since_version and edge.how != "compatible":
                source = edge.source
                found.append(Step(source.domain, source.name, source.since_version, edge.opset))
    return found


@pytest.mark.parametrize("step", _steps(), ids=str)
def test_the_step_keeps_the_numbers(step: Step, converted: Converted, refusal: Refusing) -> None:
    assert step in _examples(), f"no example of {step}"
    example = _examples()[step]
    if example.reason:
        assert example.reason in refusal(example.model, step.opset).reason
        return
    domain = "" if step.domain == DEFAULT_DOMAIN else step.domain
    run_at = 13 if not domain and step.opset < FIRST_TO_RUN else None
    converted(example.model, step.opset, example.feeds, example.expected, domain=domain, run_at=run_at)


def test_every_example_is_of_a_step() -> None:
    assert set(_examples()) <= set(_steps())
