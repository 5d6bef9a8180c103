"""Conversions of Softmax, LogSoftmax and Hardmax: they flatten their input before opset 13."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, build, op_types

OPERATORS = ("Softmax", "LogSoftmax", "Hardmax")
SHAPES: tuple[tuple[int, ...], ...] = ((5,), (3, 4), (2, 3, 4), (2, 3, 2, 4))
EXPANDED_OP_TYPES = ["Shape", "Flatten", "", "Reshape"]
ALLOWZERO_OPSET = 14


def _cases() -> list[Any]:
    cases = []
    for shape in SHAPES:
        axes = [None, *range(-len(shape), len(shape))]
        for axis in axes if len(shape) > 1 else axes[1:]:
            axis_text = "omitted" if axis is None else axis
            cases.append(pytest.param(shape, axis, id=f"rank {len(shape)}, axis {axis_text}"))
    return cases


def _model(op_type: str, data: Array, axis: int | None, *, shapes: bool = True) -> onnx.ModelProto:
    attributes = {} if axis is None else {"axis": axis}
    return build(
        [helper.make_node(op_type, ["x"], ["y"], name="node", **attributes)],
        {"x": data},
        ["y"],
        11,
        shapes=shapes,
    )


def _data(shape: tuple[int, ...]) -> Array:
    """Return random numbers with a repeated maximum, which makes Hardmax depend on the flattening."""
    data = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
    return np.asarray(np.minimum(data, np.float32(0.9)))


@pytest.mark.parametrize("is_rank_known", [True, False], ids=["rank known", "rank unknown"])
@pytest.mark.parametrize(("shape", "axis"), _cases())
@pytest.mark.parametrize("op_type", OPERATORS)
def test_preserves_results(
    op_type: str, shape: tuple[int, ...], axis: int | None, is_rank_known: bool
) -> None:
    model = _model(op_type, _data(shape), axis, shapes=is_rank_known)
    is_last = axis == -1 or (is_rank_known and (1 if axis is None else axis) == len(shape) - 1)
    for target in (13, 21):
        result = convert_and_check(model, target, {"x": _data(shape)})
        expected = [op_type] if is_last else [each or op_type for each in EXPANDED_OP_TYPES]
        # Below opset 14, Reshape alone does not restore a shape that may contain 0.
        count = len(expected) if is_rank_known or is_last or target >= ALLOWZERO_OPSET else len(expected) - 1
        assert op_types(result)[:count] == expected[:count]
        assert count < len(expected) or len(op_types(result)) == count
        (node,) = (each for each in result.graph.node if each.name == "node")
        assert helper.get_node_attr_value(node, "axis") == -1


@pytest.mark.parametrize(
    ("op_type", "value"), [("Softmax", 1), ("LogSoftmax", 0), ("Hardmax", 1)], ids=OPERATORS
)
def test_flattens_1d_data_with_the_default_axis_to_a_column(op_type: str, value: float) -> None:
    """Runtimes refuse axis 1 of 1-D data; by the definition every element forms its own row."""
    feeds = {"x": _data((5,))}
    convert_and_check(_model(op_type, feeds["x"], None), 13, feeds, [np.full(5, value, np.float32)])


@pytest.mark.parametrize("op_type", OPERATORS)
def test_upgrades_empty_batches(op_type: str) -> None:
    feeds = {"x": np.zeros((0, 3, 4), np.float32)}
    convert_and_check(_model(op_type, feeds["x"], None, shapes=False), 13, feeds)


@pytest.mark.parametrize(("is_rank_known", "target"), [(True, 13), (True, 14), (False, 14)])
@pytest.mark.parametrize("shape", [(2, 3, 0), (2, 0, 3)])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_upgrades_empty_samples(
    op_type: str, shape: tuple[int, ...], is_rank_known: bool, target: int
) -> None:
    feeds = {"x": np.zeros(shape, np.float32)}
    convert_and_check(_model(op_type, feeds["x"], None, shapes=is_rank_known), target, feeds, [feeds["x"]])


@pytest.mark.parametrize("dtype", [np.float16, np.float64], ids=["float16", "double"])
def test_upgrades_other_float_types(dtype: type[np.generic]) -> None:
    feeds = {"x": _data((2, 3, 4)).astype(dtype)}
    model = _model("Softmax", feeds["x"], 1)
    model.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    convert_and_check(model, 13, feeds, tolerance=1e-3)


def test_avoids_names_that_the_model_uses() -> None:
    """New values get names that do not occur in the model."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["softmax"], name="first", axis=1),
        helper.make_node("Softmax", ["softmax"], ["flatten"], name="second", axis=0),
        helper.make_node("Add", ["softmax", "flatten"], ["shape"], name="sum"),
    ]
    feeds = {"x": _data((2, 3, 4))}
    convert_and_check(build(nodes, feeds, ["shape"], 11), 13, feeds)


WRITTEN_OUT = ["ReduceMax", "Sub", "Exp", "ReduceSum", "Div"]
SWAPPED = ["Transpose", "Softmax", "Transpose"]


@pytest.mark.parametrize("target", [7, 10, 12])
@pytest.mark.parametrize(
    ("shape", "axis", "dtype", "expected"),
    [
        ((2, 3, 5), 1, np.float32, WRITTEN_OUT),
        ((2, 3, 5), -2, np.float64, WRITTEN_OUT),
        ((4, 3), 0, np.float32, WRITTEN_OUT),
        ((0, 3, 5), 1, np.float32, WRITTEN_OUT),
        ((2, 3, 0), 1, np.float32, WRITTEN_OUT),
        ((2, 0, 3), 1, np.float32, SWAPPED),
        ((2, 33, 3), 1, np.float32, SWAPPED),
        ((2, 3, 5), 1, np.float16, SWAPPED),
        ((2, 3, 5), 2, np.float32, ["Softmax"]),
    ],
)
def test_downgrades_along_one_axis(
    shape: tuple[int, ...], axis: int, dtype: type[np.generic], expected: list[str], target: int
) -> None:
    data = np.random.default_rng(0).normal(size=shape, scale=30)
    for position, special in ((0, np.inf), (3, -np.inf), (7, np.nan), (11, 0.0)):
        data.flat[position : position + 1] = special
    feeds = {"x": data.astype(dtype)}
    node = helper.make_node("Softmax", ["x"], ["y"], axis=axis)
    outputs = {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}
    result = convert_and_check(build([node], feeds, outputs, 13), target, feeds, tolerance=1e-3)
    assert op_types(result) == expected
