"""Expansion of CumSum and CumProd below their first opset."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.dynamic import with_symbolic_dims
from support.execution import Array, build, run

RANDOM = np.random.default_rng(0)


def _random(*shape: int, dtype: type = np.float32) -> Array:
    return RANDOM.standard_normal(shape).astype(dtype)


def _expected_totals(data: Array, axis: int, op_type: str, exclusive: int, reverse: int) -> Array:
    data = np.moveaxis(data, axis, 0)[:: -1 if reverse else 1]
    function = np.cumsum if op_type == "CumSum" else np.cumprod
    totals = function(data, 0, dtype=data.dtype)
    if exclusive:
        totals = np.concatenate([np.full_like(totals[:1], op_type == "CumProd"), totals[:-1]])
    return np.moveaxis(totals[:: -1 if reverse else 1], 0, axis)


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    ("op_type", "opset", "target"), [("CumSum", 11, 7), ("CumSum", 14, 10), ("CumProd", 26, 8)]
)
def test_expands_cumulative_operators(
    op_type: str, opset: int, target: int, axis: int, exclusive: int, reverse: int
) -> None:
    """Infinity and NaN propagate to later positions only."""
    data: Array = _random(3, 7, 2)
    data[1, 3, 0], data[2, 5, 1] = math.inf, math.nan
    node = helper.make_node(op_type, ["x", "a"], ["y"], name="node", exclusive=exclusive, reverse=reverse)
    model = build([node], {"x": data}, ["y"], opset, initializers={"a": np.array(axis, np.int64)})
    convert_and_check(model, target, {"x": data}, [_expected_totals(data, axis, op_type, exclusive, reverse)])


@pytest.mark.parametrize("shapes", [True, False], ids=["known shape", "unknown dimensions"])
def test_keeps_sums_of_negative_zero(shapes: bool) -> None:
    data = np.array([-0.0, -0.0, 0.0, -0.0], np.float32)
    node = helper.make_node("CumSum", ["x", "a"], ["y"], name="node")
    model = build([node], {"x": data}, ["y"], 11, initializers={"a": np.array(0)})
    if not shapes:
        with_symbolic_dims(model)
    for target in (10, 8):
        result = convert_and_check(model, target, {"x": data})
        assert np.signbit(run(result, {"x": data})[0]).tolist() == [True, True, False, False]


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize(("axis", "op_type"), [(0, "Scan"), (1, "MatMul"), (-1, "MatMul")])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_expands_cum_sum_of_integers_to_one_node(
    dtype: type, axis: int, op_type: str, exclusive: int, reverse: int
) -> None:
    """Sums wrap around."""
    data: Array = RANDOM.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (3, 7), dtype)
    node = helper.make_node("CumSum", ["x", "a"], ["y"], name="node", exclusive=exclusive, reverse=reverse)
    type_number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = build([node], {"x": data}, {"y": type_number}, 11, initializers={"a": np.array(axis, np.int64)})
    expected = _expected_totals(data, axis, "CumSum", exclusive, reverse)
    converted = convert_and_check(model, 9, {"x": data}, [expected])
    assert [each.op_type for each in converted.graph.node] == [op_type]


@pytest.mark.parametrize("axis", [1, -2])
def test_expands_cum_sum_along_a_computed_axis(axis: int) -> None:
    feeds: dict[str, Array] = {"x": RANDOM.integers(-9, 9, (4, 5)), "a": np.array(axis, np.int32)}
    node = helper.make_node("CumSum", ["x", "a"], ["y"], name="node")
    model = build([node], feeds, {"y": onnx.TensorProto.INT64}, 11)
    convert_and_check(model, 7, feeds, [np.cumsum(feeds["x"], axis)])


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize(
    ("axis", "shape"), [(0, (5,)), (0, (5, 2)), (1, (2, 5, 3)), (-1, (2, 3, 4)), (1, (2, 1))]
)
@pytest.mark.parametrize(
    ("op_type", "opset", "target"), [("CumSum", 11, 7), ("CumSum", 14, 9), ("CumProd", 26, 25)]
)
def test_expands_cumulative_operators_of_unknown_sizes(
    op_type: str, opset: int, target: int, axis: int, shape: tuple[int, ...], exclusive: int, reverse: int
) -> None:
    data: Array = RANDOM.integers(-9, 9, shape)
    node = helper.make_node(op_type, ["x", "a"], ["y"], name="node", exclusive=exclusive, reverse=reverse)
    model = build(
        [node],
        {"x": data},
        {"y": onnx.TensorProto.INT64},
        opset,
        initializers={"a": np.array(axis, np.int64)},
    )
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.Clear()
    convert_and_check(model, target, {"x": data}, [_expected_totals(data, axis, op_type, exclusive, reverse)])


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("target", [7, 8, 10])
@pytest.mark.parametrize(
    ("axis", "shape", "dims", "is_doubling"),
    [
        pytest.param(0, (67,), "n", True, id="list"),
        pytest.param(0, (0,), "n", True, id="no element"),
        pytest.param(1, (2, 64, 2), "2, n, 2", True, id="four rows"),
        pytest.param(-1, (2, 5), "2, n", True, id="last axis"),
        pytest.param(1, (0, 3), "0, n", True, id="no rows"),
        pytest.param(0, (5, 40), "n, 40", False, id="many rows"),
        pytest.param(1, (2, 0), "m, n", False, id="rows of unknown number"),
    ],
)
def test_adds_integers_that_overflow(
    axis: int,
    shape: tuple[int, ...],
    dims: str,
    is_doubling: bool,
    target: int,
    dtype: type[np.signedinteger],
    exclusive: int,
    reverse: int,
) -> None:
    """A Loop doubles the number of added elements; sums of integers do not depend on the order."""
    limits, kind = np.iinfo(dtype), np.dtype(dtype).name
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 11]> g ({kind}[{dims}] x) => ({kind}[{dims}] y)
        <int64 a = {{{axis}}}> {{ y = CumSum <exclusive = {exclusive}, reverse = {reverse}> (x, a) }}"""
    )
    data: Array = RANDOM.integers(limits.min, limits.max, shape, dtype)
    expected = _expected_totals(data, axis, "CumSum", exclusive, reverse) if data.size else data
    result = convert_and_check(model, target, {"x": data}, [expected])
    (loop,) = (each for each in result.graph.node if each.op_type == "Loop")
    emitted = {each.op_type for each in loop.attribute[0].g.node}
    assert ("Mul" in emitted) is (is_doubling and target > 7)


@pytest.mark.parametrize("target", [7, 8, 9])
def test_expands_cum_sum_in_a_function(target: int) -> None:
    """Functions below opset 9 hold no integers that double does not represent exactly."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 15, "local" : 1]> g (int64[n] x) => (int64[n] y) {
            y = local.f (x)
        }
        <domain: "local", opset_import: ["" : 15]> f (x) => (y) {
            a = Constant <value_int = 0> () y = CumSum (x, a)
        }"""
    )
    data: Array = RANDOM.integers(-(2**63), 2**63 - 1, 50)
    convert_and_check(model, target, {"x": data}, [np.cumsum(data)])
