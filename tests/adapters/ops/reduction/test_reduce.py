"""Downgrades of reductions: axes as an attribute, empty axes, and computed axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types

DATA = (np.random.default_rng(1).random((2, 3, 4)) + 0.5).astype(np.float32)
SINCE_18 = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
REDUCTIONS = pytest.mark.parametrize("reduction", [*SINCE_18, "Sum"])
KEEPDIMS = pytest.mark.parametrize("keepdims", [0, 1], ids=["keepdims 0", "keepdims 1"])


def _model(
    reduction: str,
    axes: Sequence[int] | None,
    *,
    data: Array = DATA,
    constant: bool = True,
    shapes: bool = True,
    **attributes: int,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    initializers = {} if axes is None else {"axes": np.array(axes, np.int64)}
    feeds = {"x": data} | ({} if constant else initializers)
    node = helper.make_node(f"Reduce{reduction}", ["x", *initializers], ["y"], name="node", **attributes)
    element_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    model = build(
        [node], feeds, {"y": element_type}, 20, initializers=initializers if constant else None, shapes=shapes
    )
    if not shapes and axes is not None and not constant:
        model.graph.input[1].type.tensor_type.shape.dim.add().dim_value = len(axes)
    return model, feeds


def _attributes(model: onnx.ModelProto) -> dict[str, Any]:
    return {each.name: helper.get_attribute_value(each) for each in model.graph.node[0].attribute}


@pytest.mark.parametrize("target", [17, 13, 12, 11, 10, 7])
@KEEPDIMS
@pytest.mark.parametrize("axes", [[1], [0, -1], None, []], ids=["one", "two", "omitted", "empty"])
@REDUCTIONS
def test_moves_constant_axes_to_an_attribute(
    reduction: str, axes: list[int] | None, keepdims: int, target: int
) -> None:
    model, feeds = _model(reduction, axes, keepdims=keepdims)
    result = convert_and_check(model, target, feeds)
    assert op_types(result) == [f"Reduce{reduction}"]
    assert ("axes" in _attributes(result)) == (bool(axes) and (reduction != "Sum" or target < 13))


@pytest.mark.parametrize("target", [17, 12, 10, 7])
@pytest.mark.parametrize("axes", [None, [], [1]], ids=["omitted", "empty", "one"])
@REDUCTIONS
def test_noop_with_empty_axes_keeps_the_elementwise_function(
    reduction: str, axes: list[int] | None, target: int
) -> None:
    model, feeds = _model(reduction, axes, noop_with_empty_axes=1)
    remainder = {"L1": "Abs", "L2": "Abs", "LogSum": "Log", "SumSquare": "Mul"}.get(reduction, "Identity")
    expected = {"Abs": DATA, "Log": np.log(DATA), "Mul": DATA * DATA, "Identity": DATA}[remainder]
    result = convert_and_check(model, target, feeds, None if axes else [expected])
    if not axes and (reduction != "Sum" or target < 13):
        assert op_types(result) == [remainder]


def test_refuses_log_sum_of_integers_over_no_axes() -> None:
    model, _ = _model("LogSum", None, data=np.ones(3, np.int32), noop_with_empty_axes=1)
    assert refusal_of(model, 13).reason == "ReduceLogSum over no axes is Log, which does not support int32"


@pytest.mark.parametrize("target", [17, 13, 12, 9])
@KEEPDIMS
@pytest.mark.parametrize(
    "axes", [[1], [0, -1], [-3, 1, 2], [], [1, 1]], ids=["one", "two", "all", "empty", "duplicate"]
)
@REDUCTIONS
def test_expands_computed_axes(reduction: str, axes: list[int], keepdims: int, target: int) -> None:
    model, feeds = _model(reduction, axes, constant=False, keepdims=keepdims)
    model.graph.node[0].name = ""
    convert_and_check(model, target, feeds)


@pytest.mark.parametrize("target", [17, 13, 12, 8])
@KEEPDIMS
@REDUCTIONS
def test_expands_computed_axes_of_unknown_sizes(reduction: str, keepdims: int, target: int) -> None:
    model, feeds = _model(reduction, [2, 0], constant=False, shapes=False, keepdims=keepdims)
    for _ in range(3):
        model.graph.input[0].type.tensor_type.shape.dim.add()
    model.graph.node[0].name = ""
    convert_and_check(model, target, feeds)


@pytest.mark.parametrize("target", [12, 11, 8])
@pytest.mark.parametrize("shapes", [True, False], ids=["known sizes", "unknown sizes"])
@KEEPDIMS
def test_sums_empty_data_along_computed_axes(keepdims: int, shapes: bool, target: int) -> None:
    for shape in ((2, 0, 3), (0, 4, 3), (0, 0, 3)):
        data = np.zeros(shape, np.float32)
        model, feeds = _model("Sum", [1], data=data, constant=False, keepdims=keepdims)
        model.graph.node[0].name = ""
        for axis, each in enumerate(() if shapes else model.graph.input[0].type.tensor_type.shape.dim):
            each.dim_param = f"d{axis}"
        convert_and_check(model, target, feeds, [data.sum(1, keepdims=bool(keepdims))])


@pytest.mark.parametrize("target", [17, 12, 8])
@REDUCTIONS
def test_expands_computed_axes_of_a_scalar(reduction: str, target: int) -> None:
    model, feeds = _model(
        reduction, [], data=np.array(-2 if reduction != "LogSum" else 2, np.float32), constant=False
    )
    model.graph.node[0].name = ""
    convert_and_check(model, target, feeds)


@pytest.mark.parametrize("target", [17, 12, 9])
@REDUCTIONS
def test_expands_computed_axes_that_may_be_empty(reduction: str, target: int) -> None:
    for axes in ([], [1]):
        model, feeds = _model(reduction, axes, constant=False, noop_with_empty_axes=1)
        model.graph.node[0].name = ""
        remainder = {"L1": np.abs, "L2": np.abs, "LogSum": np.log, "SumSquare": np.square}.get(
            reduction, np.copy
        )
        convert_and_check(model, target, feeds, None if axes else [remainder(DATA)])


def test_log_sum_exp_does_not_overflow() -> None:
    data = np.array([[1000, 999], [-1000, -1001], [-np.inf, -np.inf], [3, np.inf]], np.float32)
    model, feeds = _model("LogSumExp", [1], data=data, constant=False)
    model.graph.node[0].name = ""
    expected = np.array([[1000.3133], [-999.6867], [-np.inf], [np.inf]], np.float32)
    for target in (17, 12):
        convert_and_check(model, target, feeds, [expected])


@pytest.mark.parametrize("reduction", ["Max", "Min"])
@pytest.mark.parametrize("target", [19, 17, 12])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
def test_downgrades_max_and_min_of_booleans(constant: bool, target: int, reduction: str) -> None:
    data = np.array([[True, False], [False, False], [True, True]])
    model, feeds = _model(reduction, [1], data=data, constant=constant)
    if not constant:
        model.graph.node[0].name = ""
    function = np.max if reduction == "Max" else np.min
    convert_and_check(model, target, feeds, [function(data, 1, keepdims=True)])


def test_averages_float16_without_overflow() -> None:
    data = np.full((1, 300, 300), 3, np.float16)
    model, feeds = _model("Mean", [1, 2], data=data, constant=False)
    model.graph.node[0].name = ""
    convert_and_check(model, 13, feeds, [np.full((1, 1, 1), 3, np.float16)], 1e-3)


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("reduction", ["Sum", "Max", "Mean", "LogSumExp"])
def test_expands_computed_axes_before_opset_9(reduction: str, target: int) -> None:
    model, feeds = _model(reduction, [1], constant=False)
    model.graph.node[0].name = ""
    convert_and_check(model, target, feeds)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("target", [12, 11, 10, 9, 7])
@pytest.mark.parametrize(("axis", "keepdims"), [(0, 1), (1, 0), (-1, 1)])
def test_expands_select_last_index(op: str, axis: int, keepdims: int, target: int) -> None:
    feeds = {"x": np.array([[2, 2, 1, 1], [2, 1, 2, 1], [2, 2, 1, 1]], np.float32)}
    node = helper.make_node(op, ["x"], ["y"], name="node", axis=axis, keepdims=keepdims, select_last_index=1)
    convert_and_check(build([node], feeds, {"y": TensorProto.INT64}, 13), target, feeds)
