"""Slice: bounds are written out, or elements picked one by one, before 10."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.running import Array, build, op_types, run

from opshift import convert_version

Converted = Callable[..., onnx.ModelProto]
DATA = np.arange(4 * 7 * 5, dtype=np.float32).reshape(4, 7, 5)
FAR = 2**63 - 1
BOUNDS = [
    pytest.param([1], [3], [0], [1], id="one axis"),
    pytest.param([1, -4], [-1, 99], [0, 1], None, id="from the back and beyond"),
    pytest.param([0, 1], [2, FAR], [0, 2], None, id="to the end"),
    pytest.param([3], [1], [1], None, id="nothing"),
    pytest.param([-99], [2], [1], None, id="from before the start"),
    pytest.param([1], [6], [-2], None, id="a negative axis"),
    pytest.param([1], [FAR], [1], [2], id="every second"),
    pytest.param([-1], [-FAR], [1], [-1], id="backward"),
    pytest.param([5], [0], [1], [-2], id="backward by two"),
    pytest.param([99], [-99], [1], [-3], id="backward from beyond"),
    pytest.param([-99], [-FAR], [1], [-1], id="backward from before the start"),
    pytest.param([1, -1, 0], [3, -FAR - 1, FAR], [0, 1, 2], [1, -2, 3], id="every kind at once"),
]
Numbers = list[int]


def _slice(
    opset: int,
    inputs: Sequence[Sequence[int] | None],
    *,
    constant: bool,
    shapes: bool = True,
    kind: type[np.generic] = np.int64,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    names = ("starts", "ends", "axes", "steps")
    arrays = {n: np.array(v, dtype=kind) for n, v in zip(names, inputs, strict=True) if v is not None}
    given = arrays if constant else {n: v for n, v in arrays.items() if n in ("axes", "steps")}
    feeds = {"x": DATA} | {n: v for n, v in arrays.items() if n not in given}
    stated = ["x", *(n if n in arrays else "" for n in names)]
    while not stated[-1]:
        stated.pop()
    node = helper.make_node("Slice", stated, ["y"], name="node")
    model = build([node], feeds, ["y"], opset, initializers=given)
    if not shapes:
        model.graph.input[0].type.tensor_type.ClearField("shape")
        for axis in range(3):
            model.graph.input[0].type.tensor_type.shape.dim.add().dim_param = f"d{axis}"
    return model, feeds


@pytest.mark.parametrize("target", [11, 10, 9, 8, 7])
@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), BOUNDS)
def test_constant_bounds(
    starts: Numbers, ends: Numbers, axes: Numbers, steps: Numbers | None, target: int, converted: Converted
) -> None:
    model, feeds = _slice(13, (starts, ends, axes, steps), constant=True)
    result = converted(model, target, feeds)
    if steps in (None, [1]):
        assert op_types(result) == ["Slice"]


@pytest.mark.parametrize("target", [11, 10, 9, 8, 7])
@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), BOUNDS)
def test_steps_along_axes_of_unknown_size(
    starts: Numbers, ends: Numbers, axes: Numbers, steps: Numbers | None, target: int, converted: Converted
) -> None:
    model, feeds = _slice(13, (starts, ends, axes, steps), constant=True, shapes=False)
    converted(model, target, feeds)


@pytest.mark.parametrize("target", [11, 10, 9, 8, 7])
@pytest.mark.parametrize("shapes", [True, False], ids=["sizes known", "sizes not known"])
@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), BOUNDS)
def test_computed_bounds(
    starts: Numbers,
    ends: Numbers,
    axes: Numbers,
    steps: Numbers | None,
    shapes: bool,
    target: int,
    converted: Converted,
) -> None:
    model, feeds = _slice(13, (starts, ends, axes, steps), constant=False, shapes=shapes)
    converted(model, target, feeds)


def test_bounds_of_int32(converted: Converted) -> None:
    model, feeds = _slice(13, ([1], [-1], [-2], [2]), constant=False, kind=np.int32)
    converted(model, 9, feeds)


def test_bounds_without_axes_are_of_the_first(converted: Converted) -> None:
    model, feeds = _slice(13, ([1, 2], [3, 9], None, None), constant=False)
    converted(model, 9, feeds)


@pytest.mark.parametrize("target", [9, 7])
@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), BOUNDS)
def test_computed_axes_and_steps(
    starts: Numbers, ends: Numbers, axes: Numbers, steps: Numbers | None, target: int, converted: Converted
) -> None:
    model, constants = _slice(13, (starts, ends, axes, steps), constant=False)
    given = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    model.graph.input.extend(
        helper.make_tensor_value_info(name, 7, array.shape) for name, array in given.items()
    )
    del model.graph.initializer[:]
    converted(model, target, constants | given)


def test_computed_axes_count_from_the_front_at_10() -> None:
    feeds = {"x": DATA, "axes": np.array([-1])}
    given = {"starts": np.array([1]), "ends": np.array([3])}
    node = helper.make_node("Slice", ["x", "starts", "ends", "axes"], ["y"])
    model = build([node], feeds, ["y"], 13, initializers=given)
    assert np.array_equal(run(convert_version(model, 10), feeds)[0], DATA[..., 1:3])
