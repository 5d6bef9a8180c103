"""Downgrades of Slice below opset 10: constant bounds become attributes, other slices gather elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types, run

from opshift import convert_version

DATA = np.arange(4 * 7 * 5, dtype=np.float32).reshape(4, 7, 5)
INT64_MAX = 2**63 - 1
BOUNDS = [
    pytest.param([1], [3], [0], [1], id="one axis"),
    pytest.param([1, -4], [-1, 99], [0, 1], None, id="negative and out of range"),
    pytest.param([0, 1], [2, INT64_MAX], [0, 2], None, id="to the end"),
    pytest.param([3], [1], [1], None, id="empty"),
    pytest.param([-99], [2], [1], None, id="start out of range"),
    pytest.param([1], [6], [-2], None, id="negative axis"),
    pytest.param([1], [INT64_MAX], [1], [2], id="step of two"),
    pytest.param([-1], [-INT64_MAX], [1], [-1], id="backward"),
    pytest.param([5], [0], [1], [-2], id="backward by two"),
    pytest.param([99], [-99], [1], [-3], id="backward from out of range"),
    pytest.param([-99], [-INT64_MAX], [1], [-1], id="backward, start before the data"),
    pytest.param([1, -1, 0], [3, -INT64_MAX - 1, INT64_MAX], [0, 1, 2], [1, -2, 3], id="all combined"),
]
Ints = list[int]


def _slice_model(
    opset: int,
    inputs: Sequence[Sequence[int] | None],
    *,
    constant: bool,
    shapes: bool = True,
    dtype: type[np.generic] = np.int64,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    names = ("starts", "ends", "axes", "steps")
    arrays = {n: np.array(v, dtype=dtype) for n, v in zip(names, inputs, strict=True) if v is not None}
    initializers = arrays if constant else {n: v for n, v in arrays.items() if n in ("axes", "steps")}
    feeds = {"x": DATA} | {n: v for n, v in arrays.items() if n not in initializers}
    input_names = ["x", *(n if n in arrays else "" for n in names)]
    while not input_names[-1]:
        input_names.pop()
    node = helper.make_node("Slice", input_names, ["y"], name="node")
    model = build([node], feeds, ["y"], opset, initializers=initializers)
    if not shapes:
        model.graph.input[0].type.tensor_type.ClearField("shape")
        for axis in range(3):
            model.graph.input[0].type.tensor_type.shape.dim.add().dim_param = f"d{axis}"
    return model, feeds


@pytest.mark.parametrize("target", [11, 10, 9, 8, 7])
@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), BOUNDS)
def test_downgrades_slice_with_constant_bounds(
    starts: Ints, ends: Ints, axes: Ints, steps: Ints | None, target: int
) -> None:
    model, feeds = _slice_model(13, (starts, ends, axes, steps), constant=True)
    result = convert_and_check(model, target, feeds)
    if steps in (None, [1]):
        assert op_types(result) == ["Slice"]


@pytest.mark.parametrize("target", [11, 10, 9, 8, 7])
@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), BOUNDS)
def test_downgrades_slice_of_unknown_sizes(
    starts: Ints, ends: Ints, axes: Ints, steps: Ints | None, target: int
) -> None:
    model, feeds = _slice_model(13, (starts, ends, axes, steps), constant=True, shapes=False)
    convert_and_check(model, target, feeds)


@pytest.mark.parametrize("target", [11, 10, 9, 8, 7])
@pytest.mark.parametrize("shapes", [True, False], ids=["sizes known", "sizes unknown"])
@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), BOUNDS)
def test_downgrades_slice_with_computed_bounds(
    starts: Ints, ends: Ints, axes: Ints, steps: Ints | None, shapes: bool, target: int
) -> None:
    model, feeds = _slice_model(13, (starts, ends, axes, steps), constant=False, shapes=shapes)
    convert_and_check(model, target, feeds)


def test_downgrades_slice_with_int32_bounds() -> None:
    model, feeds = _slice_model(13, ([1], [-1], [-2], [2]), constant=False, dtype=np.int32)
    convert_and_check(model, 9, feeds)


def test_bounds_without_axes_apply_to_the_first_axes() -> None:
    model, feeds = _slice_model(13, ([1, 2], [3, 9], None, None), constant=False)
    convert_and_check(model, 9, feeds)


@pytest.mark.parametrize("target", [9, 7])
@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), BOUNDS)
def test_downgrades_slice_with_computed_axes_and_steps(
    starts: Ints, ends: Ints, axes: Ints, steps: Ints | None, target: int
) -> None:
    model, feeds = _slice_model(13, (starts, ends, axes, steps), constant=False)
    initializers = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    model.graph.input.extend(
        helper.make_tensor_value_info(name, 7, array.shape) for name, array in initializers.items()
    )
    del model.graph.initializer[:]
    convert_and_check(model, target, feeds | initializers)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("scalar", ["starts", "ends"])
def test_refuses_scalar_bounds(scalar: str, constant: bool) -> None:
    bounds = {"starts": np.array([1]), "ends": np.array([3])}
    bounds[scalar] = bounds[scalar][0]
    feeds = {"x": np.zeros((4, 3), np.float32)}
    node = helper.make_node("Slice", ["x", *bounds], ["y"])
    inputs, constants = (feeds, bounds) if constant else ({**feeds, **bounds}, {})
    model = build([node], inputs, ["y"], 13, initializers=constants)
    assert refusal_of(model, 9).reason == f"{scalar!r} is a scalar, but Slice requires lists"


def test_makes_computed_axes_nonnegative_at_opset_10() -> None:
    feeds = {"x": DATA, "axes": np.array([-1])}
    initializers = {"starts": np.array([1]), "ends": np.array([3])}
    node = helper.make_node("Slice", ["x", "starts", "ends", "axes"], ["y"])
    model = build([node], feeds, ["y"], 13, initializers=initializers)
    assert np.array_equal(run(convert_version(model, 10), feeds)[0], DATA[..., 1:3])


@pytest.mark.parametrize("count", [65, 2**40])
def test_refuses_more_bounds_than_dimensions(count: int) -> None:
    inputs = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4]),
        *(helper.make_tensor_value_info(name, onnx.TensorProto.INT64, [count]) for name in ("s", "e")),
    ]
    nodes = [helper.make_node("Slice", ["x", "s", "e"], ["y"])]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)])
    assert refusal_of(model, 9).code == "node.invalid"
