"""Downgrade of Col2Im to scattered sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types

from opshift import convert_version

RANDOM = np.random.default_rng(0)


COL2IM_CASES: dict[str, tuple[list[int], list[int], dict[str, Any]]] = {
    "overlapping blocks": ([5, 5], [3, 3], {}),
    "adjacent blocks": ([6, 4], [3, 2], {"strides": [3, 2]}),
    "blocks with gaps": ([7, 5], [2, 1], {"strides": [3, 2]}),
    "padding": ([5, 5], [1, 5], {"pads": [0, 1, 1, 2]}),
    "dilations": ([6, 6], [2, 2], {"dilations": [1, 5]}),
    "three dimensions": ([4, 3, 5], [1, 2, 3], {"strides": [1, 1, 2]}),
}


@pytest.mark.parametrize("target", [17, 12, 9, 7])
@pytest.mark.parametrize("constant", [True, False], ids=["constant sizes", "computed sizes"])
@pytest.mark.parametrize(("image", "block", "attributes"), COL2IM_CASES.values(), ids=COL2IM_CASES)
def test_downgrades_col2im(
    image: list[int], block: list[int], attributes: dict[str, Any], constant: bool, target: int
) -> None:
    rank = len(image)
    pads, strides = attributes.get("pads", [0] * 2 * rank), attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    counts = [
        (image[i] + pads[i] + pads[i + rank] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(rank)
    ]
    shape = (2, 3 * int(np.prod(block)), int(np.prod(counts)))
    data = {"x": RANDOM.standard_normal(shape).astype(np.float32)}
    size_inputs = {"i": np.array(image, np.int64), "b": np.array(block, np.int64)}
    node = helper.make_node("Col2Im", ["x", "i", "b"], ["y"], name="node", **attributes)
    feeds = data if constant else data | size_inputs
    convert_and_check(
        build([node], feeds, ["y"], 18, initializers=size_inputs if constant else None), target, feeds
    )


@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=["int32", "int64"])
@pytest.mark.parametrize("target", [17, 13, 10])
def test_downgrades_col2im_of_integers(target: int, dtype: type) -> None:
    data: dict[str, Array] = {"x": RANDOM.integers(-9, 9, (1, 8, 4)).astype(dtype)}
    result = convert_and_check(_col2im_model(data["x"]), target, data, [_expected_image(data["x"])])
    assert "Add" in op_types(result)


@pytest.mark.parametrize("target", [16, 13, 11])
def test_adds_small_integers_of_computed_blocks_in_a_wider_type(target: int) -> None:
    values: Array = np.zeros((1, 8, 4), np.int16)
    model = convert_version(_col2im_model(values, computed=True), target)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    assert inferred.graph.output[0].type.tensor_type.elem_type == TensorProto.INT16


def _col2im_model(values: Array, *, computed: bool = False) -> onnx.ModelProto:
    """Return a Col2Im model of 2x2 blocks in a 3x3 image."""
    node = helper.make_node("Col2Im", ["x", "i", "b"], ["y"], name="node")
    size_inputs: dict[str, Array] = {"i": np.array([3, 3], np.int64), "b": np.array([2, 2], np.int64)}
    element_type = helper.np_dtype_to_tensor_dtype(values.dtype)
    if computed:
        return build([node], {"x": values, **size_inputs}, {"y": element_type}, 18)
    return build([node], {"x": values}, {"y": element_type}, 18, initializers=size_inputs)


def _expected_image(values: Array) -> Array:
    image: Array = np.zeros((1, 2, 3, 3), values.dtype)
    blocks = values.reshape(2, 2, 2, 2, 2)
    for row, column, top, left in np.ndindex(2, 2, 2, 2):
        image[0, :, top + row, left + column] += blocks[:, row, column, top, left]
    return image


def test_refuses_col2im_of_booleans() -> None:
    model = _col2im_model(np.zeros((1, 8, 4), bool))
    assert refusal_of(model, 17).reason == "the columns are bool or string, which no operator can add"


def test_refuses_col2im_of_unknown_rank() -> None:
    node = helper.make_node("Col2Im", ["x", "i", "b"], ["y"], name="node")
    sizes: Array = np.array([2, 2], np.int64)
    feeds: dict[str, Array] = {"x": np.zeros((1, 4, 4), np.float32), "i": sizes, "b": sizes}
    model = build([node], feeds, {"y": TensorProto.FLOAT}, 18, shapes=False)
    assert refusal_of(model, 17).reason == "the number of dimensions of the image is unknown"
