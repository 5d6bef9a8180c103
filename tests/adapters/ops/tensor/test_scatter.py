"""Scatter below opset 9."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.dynamic import with_symbolic_dims
from support.execution import Array, assert_equal, build, op_types, run, run_reference

from opshift import convert_version

RANDOM = np.random.default_rng(0)
DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
def test_rewrites_scatter(constant: bool, axis: int, target: int) -> None:
    updates = -1 - RANDOM.random((2, 2, 3)).astype(np.float32)
    indices: Array = RANDOM.permuted(np.tile(np.arange(DATA.shape[axis]), (2, 2, 3, 1)), axis=-1)[..., 0]
    indices[...] = np.arange(updates.shape[axis]).reshape([-1 if dim == axis else 1 for dim in range(3)])
    indices[0, 0, 0] = min(indices[0, 0, 0], DATA.shape[axis] - 1)
    node = helper.make_node("Scatter", ["x", "i", "u"], ["y"], name="node", axis=axis)
    feeds: dict[str, Array] = {"x": DATA, "u": updates}
    index_input: dict[str, Array] = {"i": indices}
    feeds |= {} if constant else index_input
    model = build([node], feeds, ["y"], 9, initializers=index_input if constant else None)
    expected = DATA.copy()
    np.put_along_axis(
        expected[tuple(slice(None if dim == axis else n) for dim, n in enumerate((2, 2, 3)))],
        indices,
        updates,
        axis,
    )
    convert_and_check(model, target, feeds, [expected])


REDUCTIONS = ("add", "mul", "max", "min")
TYPES = (np.float32, np.float64, np.int64, np.int32, np.uint8, np.int8, np.uint16, np.uint32)


def _reduction(
    op_type: str, reduction: str, dtype: type, count: int, axis: int = 0
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Return a node with repeated targets, negative indices and `count` updates."""
    random = np.random.default_rng(1)
    data: Array = (random.random((4, 5)) * 9).astype(dtype)
    if op_type == "ScatterND":
        indices: Array = random.integers(-4, 4, (count, 1))
        updates: Array = (random.random((count, 5)) * 9).astype(dtype)
        attributes: dict[str, str | int] = {"reduction": reduction}
    else:
        shape = (count, 5) if axis == 0 else (4, count)
        indices = random.integers(-4, 4, shape)
        updates = (random.random(shape) * 9).astype(dtype)
        attributes = {"reduction": reduction, "axis": axis}
    feeds = {"x": data, "i": indices, "u": updates}
    node = helper.make_node(op_type, list(feeds), ["y"], name="node", **attributes)
    return build([node], feeds, {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}, 18), feeds


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", TYPES)
def test_reduces_in_a_table(dtype: type, reduction: str) -> None:
    """A Loop multiplies integers, because ReduceProd of onnxruntime does not wrap around."""
    model, feeds = _reduction("ScatterElements", reduction, dtype, 3)
    for target in (15, 13):
        result = convert_and_check(model, target, feeds, tolerance=0)
        assert ("Loop" in op_types(result)) == (reduction == "mul" and np.dtype(dtype).kind != "f")
        assert_equal(run_reference(result, feeds), run(model, feeds))


HUGE = [1e30, 1e30]
INT64_MAX = np.iinfo(np.int64).max


@pytest.mark.parametrize("op_type", ["ScatterElements", "ScatterND"])
@pytest.mark.parametrize(
    ("reduction", "dtype", "start", "updates", "total"),
    [
        pytest.param("mul", np.float32, 0.0, HUGE, 0.0, id="product of updates overflows"),
        pytest.param("mul", np.float64, 2.0, [-0.0], -0.0, id="product is -0.0"),
        pytest.param("mul", np.uint8, 3, [255] * 5, 3 * 255**5 % 256, id="product wraps around"),
        pytest.param("add", np.float32, -3e38, [3e38, 3e38], 3e38, id="sum of updates overflows"),
        pytest.param("add", np.float32, 1e8, [1.0] * 9, 1e8, id="each update is rounded"),
        pytest.param("add", np.float16, 2048.0, [1.0] * 9, 2048.0, id="each float16 update is rounded"),
        pytest.param("add", np.float64, -0.0, [-0.0], -0.0, id="sum is -0.0"),
        pytest.param("add", np.int64, 2**60, [2**60, 5], 2**61 + 5, id="large integers"),
        pytest.param("add", np.int64, INT64_MAX, [1], -INT64_MAX - 1, id="sum wraps around"),
    ],
)
def test_applies_updates_to_the_data_in_order(
    reduction: str, dtype: type, start: float, updates: list[float], total: float, op_type: str
) -> None:
    """The second element has no updates."""
    feeds: dict[str, Array] = {
        "x": np.array([start, start], dtype),
        "i": np.zeros((len(updates), 1) if op_type == "ScatterND" else len(updates), np.int64),
        "u": np.array(updates, dtype),
    }
    node = helper.make_node(op_type, list(feeds), ["y"], name="node", reduction=reduction)
    model = build([node], feeds, {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}, 16)
    expected: Array = np.array([total, start], dtype)
    for target in (15, 13, 11, 10):
        result = convert_and_check(model, target, feeds, [expected], tolerance=0)
        assert np.array_equal(np.signbit(run(result, feeds)[0]), np.signbit(expected))


@pytest.mark.some_cases(12)
@pytest.mark.parametrize("op_type", ["ScatterElements", "ScatterND"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("target", [15, 11])
def test_applies_updates_of_unknown_number_in_turns(
    target: int, dtype: type, reduction: str, op_type: str
) -> None:
    for count in (40, 1, 0):
        model, feeds = _reduction(op_type, reduction, dtype, count)
        with_symbolic_dims(model)
        if op_type == "ScatterND":
            # The length of index tuples must be known.
            model.graph.input[1].type.tensor_type.shape.dim[-1].dim_value = 1
        result = convert_and_check(model, target, feeds)
        assert "Loop" in op_types(result)
        # The updates of an element are applied in their order, so that even sums of floats are equal.
        assert_equal(run(result, feeds), run(model, feeds), 0)
        if count:
            assert_equal(run_reference(result, feeds), run(model, feeds))


@pytest.mark.parametrize("axis", [1, -1])
def test_applies_updates_along_other_axes_in_turns(axis: int) -> None:
    model, feeds = _reduction("ScatterElements", "add", np.float32, 7, axis)
    for target in (15, 10):
        result = convert_version(with_symbolic_dims(model), target)
        assert_equal(run(result, feeds), run(model, feeds), 0)


def test_applies_many_updates_of_known_number_in_turns() -> None:
    model, feeds = _reduction("ScatterElements", "add", np.float32, 11_000)
    result = convert_and_check(model, 15, feeds)
    assert "Loop" in op_types(result)
    assert len(result.SerializeToString()) < 1 << 20


def test_refuses_reductions_of_booleans() -> None:
    model, _ = _reduction("ScatterElements", "max", np.bool_, 3)
    assert refusal_of(model, 15).reason == "reduction 'max' cannot be rewritten for elements of type bool"


@pytest.mark.parametrize(
    ("symbolic", "remedy"),
    [
        (True, "declare the shape of 'x' [x_0, x_1] and 'i' [i_0, i_1]"),
        (False, "convert to opset 10 or later"),
    ],
)
def test_names_the_data_in_refusals_of_integer_reductions(symbolic: bool, remedy: str) -> None:
    """The data is cast to a wider type, which the refusal must not name."""
    model, _ = _reduction("ScatterElements", "max", np.uint16, 11_000)
    refusal = refusal_of(with_symbolic_dims(model) if symbolic else model, 9)
    assert refusal.remedy is not None
    assert refusal.remedy.startswith(remedy)
