"""Upgrade of elementwise operators to opset 7: `broadcast` and `axis` become NumPy broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types

TARGETS = (7, 21)


class Operator(NamedTuple):
    """NumPy function and element type of a binary operator."""

    function: Callable[[Array, Array], Array]
    dtype: type[np.generic]


OPERATORS = {
    "Add": Operator(np.add, np.float32),
    "Sub": Operator(np.subtract, np.float64),
    "Mul": Operator(np.multiply, np.int32),
    "Div": Operator(np.divide, np.float32),
    "And": Operator(np.logical_and, np.bool_),
    "Or": Operator(np.logical_or, np.bool_),
    "Xor": Operator(np.logical_xor, np.bool_),
    "Equal": Operator(np.equal, np.int64),
    "Greater": Operator(np.greater, np.float32),
    "Less": Operator(np.less, np.float64),
    "Pow": Operator(np.power, np.float32),
}


class BroadcastCase(NamedTuple):
    """Input shapes, attributes and the dimension of the first input at which the second input starts."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    attributes: Mapping[str, int]
    start: int
    added_node: str = ""


CASES = {
    "equal shapes without broadcast": BroadcastCase((2, 3), (2, 3), {}, 0),
    "equal shapes with broadcast 0": BroadcastCase((2, 3), (2, 3), {"broadcast": 0}, 0),
    "axis without broadcast": BroadcastCase((2, 3), (2, 3), {"broadcast": 0, "axis": 1}, 0),
    "equal shapes with broadcast 1": BroadcastCase((2, 3), (2, 3), {"broadcast": 1}, 0),
    "last dimension": BroadcastCase((2, 3, 4), (4,), {"broadcast": 1}, 2),
    "last two dimensions": BroadcastCase((2, 3, 4), (3, 4), {"broadcast": 1}, 1),
    "scalar": BroadcastCase((2, 3, 4), (), {"broadcast": 1}, 0),
    "single element": BroadcastCase((2, 3, 4), (1,), {"broadcast": 1}, 2),
    "last dimension by axis": BroadcastCase((2, 3, 4), (4,), {"broadcast": 1, "axis": 2}, 2),
    "last dimension by negative axis": BroadcastCase((2, 3, 4), (4,), {"broadcast": 1, "axis": -1}, 2),
    "all dimensions by axis 0": BroadcastCase((2, 3), (2, 3), {"broadcast": 1, "axis": 0}, 0),
    "middle dimension": BroadcastCase((2, 3, 4, 5), (3,), {"broadcast": 1, "axis": 1}, 1, "Unsqueeze"),
    "two middle dimensions": BroadcastCase((2, 3, 4, 5), (3, 4), {"broadcast": 1, "axis": 1}, 1, "Unsqueeze"),
    "first dimension": BroadcastCase((2, 3, 4), (2,), {"broadcast": 1, "axis": 0}, 0, "Unsqueeze"),
    "middle dimension by negative axis": BroadcastCase(
        (2, 3, 4), (3,), {"broadcast": 1, "axis": -2}, 1, "Unsqueeze"
    ),
    "size that matches several dimensions": BroadcastCase(
        (3, 3, 3), (3,), {"broadcast": 1, "axis": 1}, 1, "Unsqueeze"
    ),
    "single element by axis": BroadcastCase((2, 3, 4), (1,), {"broadcast": 1, "axis": 0}, 0, "Unsqueeze"),
}


def _random(shape: tuple[int, ...], dtype: type[np.generic], seed: int) -> Array:
    values = np.random.default_rng(seed).integers(1, 4, shape)
    return np.asarray(values % 2 if dtype is np.bool_ else values, dtype)


def _broadcast(first: Array, second: Array, start: int) -> Array:
    """Broadcast the second tensor to the shape of the first by the rule below opset 7."""
    indices = np.indices(first.shape)[start : start + second.ndim]
    return np.asarray(second[tuple(index % size for index, size in zip(indices, second.shape, strict=True))])


def _model(op: str, first: Array, second: Array, result: Array, **attributes: Any) -> onnx.ModelProto:
    shapes = attributes.pop("shapes", True)
    node = helper.make_node(op, ["a", "b"], ["y"], name="node", **attributes)
    outputs = {"y": helper.np_dtype_to_tensor_dtype(result.dtype)}
    return build([node], {"a": first, "b": second}, outputs, 6, shapes=shapes)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("op", OPERATORS)
def test_preserves_outputs(op: str, case: BroadcastCase) -> None:
    function, dtype = OPERATORS[op]
    first, second = _random(case.first, dtype, 1), _random(case.second, dtype, 2)
    expected = np.asarray(function(first, _broadcast(first, second, case.start)))
    model = _model(op, first, second, expected, **case.attributes)
    for target in TARGETS:
        result = convert_and_check(model, target, {"a": first, "b": second}, [expected])
        assert op_types(result) == [*filter(None, [case.added_node]), op]
        assert not result.graph.node[-1].attribute


ONES = np.ones((2, 3, 4), np.float32)


def test_needs_no_ranks_for_trailing_dimensions() -> None:
    feeds = {"a": ONES, "b": ONES[0]}
    model = _model("Add", feeds["a"], feeds["b"], ONES, shapes=False, broadcast=1)
    assert op_types(convert_and_check(model, 7, feeds, [ONES + 1])) == ["Add"]


def test_uses_inferred_ranks() -> None:
    flatten = helper.make_node("Flatten", ["x"], ["a"])
    add = helper.make_node("Add", ["a", "b"], ["y"], name="node", broadcast=1, axis=0)
    feeds = {"x": ONES, "b": np.array([1, 2], np.float32)}
    model = build([flatten, add], feeds, ["y"], 6)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    convert_and_check(model, 7, feeds, [ONES.reshape(2, 12) + feeds["b"][:, None]])


@pytest.mark.parametrize(("cleared", "name"), [(0, "'a'"), (1, "'b'")], ids=["first input", "second input"])
@pytest.mark.parametrize("op", OPERATORS)
def test_refuses_axis_without_both_ranks(op: str, cleared: int, name: str) -> None:
    function, dtype = OPERATORS[op]
    first, second = _random((2, 3), dtype, 1), _random((2,), dtype, 2)
    result = np.asarray(function(first, second[:, None]))
    model = _model(op, first, second, result, broadcast=1, axis=0)
    model.graph.input[cleared].type.tensor_type.ClearField("shape")
    refused = refusal_of(model, 7)
    assert refused.reason == f"the rank of {name} is unknown"
    assert refused.remedy.startswith(f"declare the shape of {name} with --shape ")


@pytest.mark.parametrize("axis", [-3, -(2**31)])
def test_refuses_axis_out_of_range(axis: int) -> None:
    refused = refusal_of(_model("Add", ONES[0], ONES[0, 0], ONES[0], broadcast=1, axis=axis), 7)
    assert refused.reason == f"axis {axis} is out of range for 'a', which has 2 dimensions"
    assert refused.remedy == "set axis to a number from 0 to 1"


class SlopeCase(NamedTuple):
    """Shapes of the data, the slope and the slope as NumPy broadcasts it."""

    data: tuple[int, ...]
    slope: tuple[int, ...]
    broadcast_slope: tuple[int, ...]
    added_node: str = ""


SLOPE_CASES = {
    "single slope": SlopeCase((2, 3, 4), (1,), (1,)),
    "scalar slope": SlopeCase((2, 3, 4), (), ()),
    "slope per column": SlopeCase((2, 3), (3,), (3,)),
    "slope per channel of sequences": SlopeCase((2, 3, 4), (3,), (3, 1), "Unsqueeze"),
    "slope per channel of images": SlopeCase((2, 3, 3, 3), (3,), (3, 1, 1), "Unsqueeze"),
    "slope per channel of volumes": SlopeCase((1, 2, 3, 2, 2), (2,), (2, 1, 1, 1), "Unsqueeze"),
    "slope that broadcasts already": SlopeCase((2, 3, 4, 5), (3, 1, 1), (3, 1, 1)),
    "slope per element": SlopeCase((2, 3), (2, 3), (2, 3)),
    "single slope for a vector": SlopeCase((3,), (1,), (1,)),
    "single slope for a scalar": SlopeCase((), (1,), (), "Squeeze"),
}


def _prelu_model(case: SlopeCase) -> tuple[onnx.ModelProto, dict[str, Array], Array]:
    random = np.random.default_rng(3)
    feeds = {"x": random.standard_normal(case.data).astype(np.float32)}
    feeds["slope"] = random.uniform(0.1, 0.9, case.slope).astype(np.float32)
    expected = np.where(feeds["x"] < 0, feeds["x"] * feeds["slope"].reshape(case.broadcast_slope), feeds["x"])
    node = helper.make_node("PRelu", ["x", "slope"], ["y"], name="node")
    return build([node], feeds, ["y"], 6), feeds, expected


@pytest.mark.parametrize("case", SLOPE_CASES.values(), ids=SLOPE_CASES)
def test_aligns_slopes_with_channels(case: SlopeCase) -> None:
    model, feeds, expected = _prelu_model(case)
    for target in TARGETS:
        result = convert_and_check(model, target, feeds, [expected])
        assert op_types(result) == [*filter(None, [case.added_node]), "PRelu"]


def test_aligns_slopes_of_unknown_length_with_channels() -> None:
    model, feeds, expected = _prelu_model(SLOPE_CASES["slope per channel of sequences"])
    model.graph.input[1].type.tensor_type.shape.dim[0].Clear()
    convert_and_check(model, 7, feeds, [expected])


def test_needs_no_rank_for_single_slope() -> None:
    model, feeds, expected = _prelu_model(SLOPE_CASES["single slope"])
    model.graph.input[0].type.tensor_type.ClearField("shape")
    convert_and_check(model, 7, feeds, [expected])


@pytest.mark.parametrize(("cleared", "name"), [(0, "'x'"), (1, "'slope'")], ids=["data", "slope"])
def test_refuses_slopes_without_both_ranks(cleared: int, name: str) -> None:
    model = _prelu_model(SLOPE_CASES["slope per channel of images"])[0]
    model.graph.input[cleared].type.tensor_type.ClearField("shape")
    refused = refusal_of(model, 7)
    assert refused.reason == f"the rank of {name} is unknown"
    assert refused.remedy.startswith(f"declare the shape of {name} with --shape ")
