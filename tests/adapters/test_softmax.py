"""Softmax, LogSoftmax, Hardmax: all dimensions from `axis` on are one until 13, `axis` alone after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build, op_types

Converted = Callable[..., onnx.ModelProto]
OPERATORS = ("Softmax", "LogSoftmax", "Hardmax")
SHAPES: tuple[tuple[int, ...], ...] = ((5,), (3, 4), (2, 3, 4), (2, 3, 2, 4))
FLATTENED = ["Shape", "Flatten", "", "Reshape"]


def _cases() -> list[Any]:
    found = []
    for shape in SHAPES:
        axes = [None, *range(-len(shape), len(shape))]
        for axis in axes if len(shape) > 1 else axes[1:]:
            where = "left out" if axis is None else axis
            found.append(pytest.param(shape, axis, id=f"rank {len(shape)}, axis {where}"))
    return found


def _model(op: str, data: Array, axis: int | None, *, shapes: bool = True) -> onnx.ModelProto:
    stated = {} if axis is None else {"axis": axis}
    return build(
        [helper.make_node(op, ["x"], ["y"], name="node", **stated)], {"x": data}, ["y"], 11, shapes=shapes
    )


def _data(shape: tuple[int, ...]) -> Array:
    """Random numbers, the greatest of them more than once, which tells Hardmax's flattened groups apart."""
    data = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
    return np.asarray(np.minimum(data, np.float32(0.9)))


@pytest.mark.parametrize("is_stated", [True, False], ids=["rank stated", "rank not stated"])
@pytest.mark.parametrize(("shape", "axis"), _cases())
@pytest.mark.parametrize("op", OPERATORS)
def test_numbers_stay_the_same(
    op: str, shape: tuple[int, ...], axis: int | None, is_stated: bool, converted: Converted
) -> None:
    model = _model(op, _data(shape), axis, shapes=is_stated)
    is_last = axis == -1 or (is_stated and (1 if axis is None else axis) == len(shape) - 1)
    for target in (13, 21):
        result = converted(model, target, {"x": _data(shape)})
        assert op_types(result) == ([op] if is_last else [each or op for each in FLATTENED])
        (node,) = (each for each in result.graph.node if each.name == "node")
        assert helper.get_node_attr_value(node, "axis") == -1


@pytest.mark.parametrize(("op", "value"), [("Softmax", 1), ("LogSoftmax", 0), ("Hardmax", 1)], ids=OPERATORS)
def test_a_list_with_the_default_axis_is_a_column(op: str, value: float, converted: Converted) -> None:
    """Runtimes refuse the axis 1 of a list; by the definition every element stands alone."""
    feeds = {"x": _data((5,))}
    converted(_model(op, feeds["x"], None), 13, feeds, [np.full(5, value, np.float32)])


@pytest.mark.parametrize("op", OPERATORS)
def test_batches_without_a_sample(op: str, converted: Converted) -> None:
    feeds = {"x": np.zeros((0, 3, 4), np.float32)}
    converted(_model(op, feeds["x"], None, shapes=False), 13, feeds)


@pytest.mark.parametrize(("is_stated", "target"), [(True, 13), (True, 14), (False, 14)])
@pytest.mark.parametrize("shape", [(2, 3, 0), (2, 0, 3)])
@pytest.mark.parametrize("op", OPERATORS)
def test_samples_without_an_element(
    op: str, shape: tuple[int, ...], is_stated: bool, target: int, converted: Converted
) -> None:
    feeds = {"x": np.zeros(shape, np.float32)}
    converted(_model(op, feeds["x"], None, shapes=is_stated), target, feeds, [feeds["x"]])


@pytest.mark.parametrize("kind", [np.float16, np.float64], ids=["float16", "double"])
def test_other_precisions(kind: type[np.generic], converted: Converted) -> None:
    feeds = {"x": _data((2, 3, 4)).astype(kind)}
    model = _model("Softmax", feeds["x"], 1)
    model.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    converted(model, 13, feeds, tolerance=1e-3)


def test_a_name_that_looks_like_a_new_value_is_left_alone(converted: Converted) -> None:
    """Values that the conversion makes are called like nothing in the model."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["softmax"], name="first", axis=1),
        helper.make_node("Softmax", ["softmax"], ["flatten"], name="second", axis=0),
        helper.make_node("Add", ["softmax", "flatten"], ["shape"], name="sum"),
    ]
    feeds = {"x": _data((2, 3, 4))}
    converted(build(nodes, feeds, ["shape"], 11), 13, feeds)
