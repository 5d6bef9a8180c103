"""Elementwise operators: what `broadcast` and `axis` said before 7, numpy's broadcasting says after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build, op_types

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
TARGETS = (7, 21)


class Operator(NamedTuple):
    """What an operator does to two numbers, and the type of numbers."""

    function: Callable[[Array, Array], Array]
    kind: type[np.generic]


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


class Row(NamedTuple):
    """Two shapes, the attributes, and the dimension of the first that the second's first stands for."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    attributes: Mapping[str, int]
    start: int
    becomes: str = ""


ROWS = {
    "equal shapes without broadcast": Row((2, 3), (2, 3), {}, 0),
    "equal shapes with broadcast 0": Row((2, 3), (2, 3), {"broadcast": 0}, 0),
    "an axis that nothing is broadcast along": Row((2, 3), (2, 3), {"broadcast": 0, "axis": 1}, 0),
    "equal shapes with broadcast 1": Row((2, 3), (2, 3), {"broadcast": 1}, 0),
    "the last dimension": Row((2, 3, 4), (4,), {"broadcast": 1}, 2),
    "the last two dimensions": Row((2, 3, 4), (3, 4), {"broadcast": 1}, 1),
    "a scalar": Row((2, 3, 4), (), {"broadcast": 1}, 0),
    "a single element": Row((2, 3, 4), (1,), {"broadcast": 1}, 2),
    "the last dimension by its axis": Row((2, 3, 4), (4,), {"broadcast": 1, "axis": 2}, 2),
    "the last dimension by a negative axis": Row((2, 3, 4), (4,), {"broadcast": 1, "axis": -1}, 2),
    "all dimensions by axis 0": Row((2, 3), (2, 3), {"broadcast": 1, "axis": 0}, 0),
    "a channel in the middle": Row((2, 3, 4, 5), (3,), {"broadcast": 1, "axis": 1}, 1, "Unsqueeze"),
    "two dimensions in the middle": Row((2, 3, 4, 5), (3, 4), {"broadcast": 1, "axis": 1}, 1, "Unsqueeze"),
    "the first dimension": Row((2, 3, 4), (2,), {"broadcast": 1, "axis": 0}, 0, "Unsqueeze"),
    "a negative axis with one dimension behind it": Row(
        (2, 3, 4), (3,), {"broadcast": 1, "axis": -2}, 1, "Unsqueeze"
    ),
    "a size that fits at two places": Row((3, 3, 3), (3,), {"broadcast": 1, "axis": 1}, 1, "Unsqueeze"),
    "a single element at an axis": Row((2, 3, 4), (1,), {"broadcast": 1, "axis": 0}, 0, "Unsqueeze"),
}


def _numbers(shape: tuple[int, ...], kind: type[np.generic], seed: int) -> Array:
    drawn = np.random.default_rng(seed).integers(1, 4, shape)
    return np.asarray(drawn % 2 if kind is np.bool_ else drawn, kind)


def _stretched(first: Array, second: Array, start: int) -> Array:
    """The second tensor as large as the first, element by element, by the rule of versions below 7."""
    places = np.indices(first.shape)[start : start + second.ndim]
    return np.asarray(second[tuple(place % size for place, size in zip(places, second.shape, strict=True))])


def _model(op: str, first: Array, second: Array, result: Array, **stated: Any) -> onnx.ModelProto:
    shapes = stated.pop("shapes", True)
    node = helper.make_node(op, ["a", "b"], ["y"], name="node", **stated)
    outputs = {"y": helper.np_dtype_to_tensor_dtype(result.dtype)}
    return build([node], {"a": first, "b": second}, outputs, 6, shapes=shapes)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("op", OPERATORS)
def test_numbers_stay_the_same(op: str, row: Row, converted: Converted) -> None:
    function, kind = OPERATORS[op]
    first, second = _numbers(row.first, kind, 1), _numbers(row.second, kind, 2)
    expected = np.asarray(function(first, _stretched(first, second, row.start)))
    model = _model(op, first, second, expected, **row.attributes)
    for target in TARGETS:
        result = converted(model, target, {"a": first, "b": second}, [expected])
        assert op_types(result) == [*filter(None, [row.becomes]), op]
        assert not result.graph.node[-1].attribute


FLOATS = np.ones((2, 3, 4), np.float32)


def test_no_rank_is_needed_where_dimensions_align_at_the_end(converted: Converted) -> None:
    feeds = {"a": FLOATS, "b": FLOATS[0]}
    model = _model("Add", feeds["a"], feeds["b"], FLOATS, shapes=False, broadcast=1)
    assert op_types(converted(model, 7, feeds, [FLOATS + 1])) == ["Add"]


def test_a_rank_that_follows_from_the_nodes_before_is_enough(converted: Converted) -> None:
    flatten = helper.make_node("Flatten", ["x"], ["a"])
    add = helper.make_node("Add", ["a", "b"], ["y"], name="node", broadcast=1, axis=0)
    feeds = {"x": FLOATS, "b": np.array([1, 2], np.float32)}
    model = build([flatten, add], feeds, ["y"], 6)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    converted(model, 7, feeds, [FLOATS.reshape(2, 12) + feeds["b"][:, None]])


@pytest.mark.parametrize(("cleared", "name"), [(0, "'a'"), (1, "'b'")], ids=["the first", "the second"])
@pytest.mark.parametrize("op", OPERATORS)
def test_an_axis_needs_both_ranks(op: str, cleared: int, name: str, refusal: Refusing) -> None:
    function, kind = OPERATORS[op]
    first, second = _numbers((2, 3), kind, 1), _numbers((2,), kind, 2)
    result = np.asarray(function(first, second[:, None]))
    model = _model(op, first, second, result, broadcast=1, axis=0)
    model.graph.input[cleared].type.tensor_type.ClearField("shape")
    found = refusal(model, 7)
    assert found.reason == f"the rank of {name} is unknown"
    assert found.remedy == f"declare it: add a value_info for {name}"


class Slopes(NamedTuple):
    """The shapes of data and slope, and that of the slope as numpy broadcasts it."""

    data: tuple[int, ...]
    slope: tuple[int, ...]
    stretched: tuple[int, ...]
    becomes: str = ""


SLOPES = {
    "one slope": Slopes((2, 3, 4), (1,), (1,)),
    "one slope as a scalar": Slopes((2, 3, 4), (), ()),
    "a slope for each column": Slopes((2, 3), (3,), (3,)),
    "a slope for each channel of sequences": Slopes((2, 3, 4), (3,), (3, 1), "Unsqueeze"),
    "a slope for each channel of images": Slopes((2, 3, 3, 3), (3,), (3, 1, 1), "Unsqueeze"),
    "a slope for each channel of volumes": Slopes((1, 2, 3, 2, 2), (2,), (2, 1, 1, 1), "Unsqueeze"),
    "slopes that are broadcast already": Slopes((2, 3, 4, 5), (3, 1, 1), (3, 1, 1)),
    "a slope for each element": Slopes((2, 3), (2, 3), (2, 3)),
    "one slope for a list": Slopes((3,), (1,), (1,)),
    "one slope for a scalar": Slopes((), (1,), (), "Squeeze"),
}


def _prelu(row: Slopes) -> tuple[onnx.ModelProto, dict[str, Array], Array]:
    random = np.random.default_rng(3)
    feeds = {"x": random.standard_normal(row.data).astype(np.float32)}
    feeds["slope"] = random.uniform(0.1, 0.9, row.slope).astype(np.float32)
    expected = np.where(feeds["x"] < 0, feeds["x"] * feeds["slope"].reshape(row.stretched), feeds["x"])
    node = helper.make_node("PRelu", ["x", "slope"], ["y"], name="node")
    return build([node], feeds, ["y"], 6), feeds, expected


@pytest.mark.parametrize("row", SLOPES.values(), ids=SLOPES)
def test_slopes_belong_to_channels(row: Slopes, converted: Converted) -> None:
    model, feeds, expected = _prelu(row)
    for target in TARGETS:
        result = converted(model, target, feeds, [expected])
        assert op_types(result) == [*filter(None, [row.becomes]), "PRelu"]


def test_a_list_of_slopes_of_unknown_length_belongs_to_channels(converted: Converted) -> None:
    model, feeds, expected = _prelu(SLOPES["a slope for each channel of sequences"])
    model.graph.input[1].type.tensor_type.shape.dim[0].Clear()
    converted(model, 7, feeds, [expected])


def test_one_slope_needs_no_rank(converted: Converted) -> None:
    model, feeds, expected = _prelu(SLOPES["one slope"])
    model.graph.input[0].type.tensor_type.ClearField("shape")
    converted(model, 7, feeds, [expected])


@pytest.mark.parametrize(("cleared", "name"), [(0, "'x'"), (1, "'slope'")], ids=["data", "slope"])
def test_slopes_need_both_ranks(cleared: int, name: str, refusal: Refusing) -> None:
    model = _prelu(SLOPES["a slope for each channel of images"])[0]
    model.graph.input[cleared].type.tensor_type.ClearField("shape")
    found = refusal(model, 7)
    assert found.reason == f"the rank of {name} is unknown"
    assert found.remedy == f"declare it: add a value_info for {name}"
