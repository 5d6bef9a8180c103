"""Downgrades of GridSample, DeformConv and Col2Im to gathers from pixel tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.running import Array, build, op_types

from opshift import convert_version

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.standard_normal((2, 3, 4, 5)).astype(np.float32)
GRID = RANDOM.uniform(-1.7, 1.7, (2, 3, 6, 2)).astype(np.float32)


def _grid_sample_model(opset: int, mode: str, padding: str, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(
        "GridSample", ["x", "g"], ["y"], name="node", mode=mode, padding_mode=padding, **attributes
    )
    return build([node], {"x": IMAGES, "g": GRID}, ["y"], opset)


# Below opset 16, cubic with border padding is refused unless allowed, because runtimes disagree about it.
GRID_SAMPLE_CASES = [
    (mode, padding, target)
    for mode in ("nearest", "linear", "cubic")
    for padding in ("zeros", "border", "reflection")
    for target in (19, 16, 15, 11, 9, 7)
    if (mode, padding) != ("cubic", "border") or target >= 16
]


@pytest.mark.parametrize("align_corners", [0, 1], ids=["edges", "corners"])
@pytest.mark.parametrize(("mode", "padding", "target"), GRID_SAMPLE_CASES)
def test_downgrades_grid_sample(mode: str, padding: str, align_corners: int, target: int) -> None:
    model = _grid_sample_model(20, mode, padding, align_corners=align_corners)
    result = convert_and_check(model, target, {"x": IMAGES, "g": GRID}, tolerance=1e-4)
    assert (op_types(result) == ["GridSample"]) == (target >= 16)


@pytest.mark.parametrize("target", [19, 15, 9])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_downgrades_grid_sample_of_volumes(mode: str, padding: str, target: int) -> None:
    feeds = {
        "x": RANDOM.standard_normal((2, 3, 3, 4, 5)).astype(np.float32),
        "g": RANDOM.uniform(-1.5, 1.5, (2, 2, 3, 4, 3)).astype(np.float32),
    }
    node = helper.make_node("GridSample", ["x", "g"], ["y"], name="node", mode=mode, padding_mode=padding)
    convert_and_check(build([node], feeds, ["y"], 20), target, feeds, tolerance=1e-4)


def test_an_infinite_pixel_does_not_spread() -> None:
    data = IMAGES.copy()
    data[0, 0, 0, 0] = np.inf
    feeds = {"x": data, "g": np.full((2, 1, 2, 2), [[0.1, 0.2], [3, 3]], np.float32)}
    node = helper.make_node("GridSample", ["x", "g"], ["y"], name="node")
    convert_and_check(build([node], feeds, ["y"], 16), 15, feeds)


def test_refuses_cubic_grid_sample_with_border_padding() -> None:
    refused = refusal_of(_grid_sample_model(16, "bicubic", "border"), 15)
    assert refused.reason.startswith("onnxruntime clamps the pixels of cubic interpolation to the border")


@pytest.mark.parametrize("target", [15, 11, 9, 7])
@pytest.mark.parametrize("dynamic", ["batch", "grid", "both"])
def test_downgrades_grid_sample_of_dynamic_sizes(dynamic: str, target: int) -> None:
    for batch, grid_height in ((1, 2), (3, 1)):
        feeds = {
            "x": RANDOM.standard_normal((batch, 2, 3, 4)).astype(np.float32),
            "g": RANDOM.uniform(-1.5, 1.5, (batch, grid_height, 5, 2)).astype(np.float32),
        }
        node = helper.make_node("GridSample", ["x", "g"], ["y"], name="node")
        model = build([node], feeds, ["y"], 16)
        data, grid = (each.type.tensor_type.shape.dim for each in model.graph.input)
        if dynamic != "grid":
            data[0].dim_param = grid[0].dim_param = "batch"
        if dynamic != "batch":
            grid[1].dim_param, grid[2].dim_param = "height", "width"
        convert_and_check(model, target, feeds)


def test_refuses_grid_sample_of_unknown_shape() -> None:
    node = helper.make_node("GridSample", ["x", "g"], ["y"], name="node")
    model = build([node], {"x": IMAGES, "g": GRID}, ["y"], 16, shapes=False)
    assert refusal_of(model, 15).reason == "the shape of 'x', which pixel positions depend on, is unknown"


DEFORM_CONV_CASES: dict[str, tuple[dict[str, Any], int, int, bool]] = {
    "plain": ({}, 1, 1, False),
    "mask and bias": ({"pads": [1, 0, 1, 2]}, 1, 1, True),
    "strides and dilations": ({"strides": [2, 1], "dilations": [1, 2], "pads": [1, 1, 1, 1]}, 1, 1, False),
    "groups": ({"pads": [1, 1, 1, 1]}, 2, 1, True),
    "offset groups": ({"pads": [1, 1, 1, 1]}, 1, 2, True),
    "groups and offset groups": ({"pads": [1, 1, 1, 1]}, 2, 4, False),
}


@pytest.mark.parametrize("target", [18, 11, 9, 7])
@pytest.mark.parametrize(
    ("attributes", "group", "offset_groups", "with_mask_and_bias"),
    DEFORM_CONV_CASES.values(),
    ids=DEFORM_CONV_CASES,
)
def test_downgrades_deform_conv(
    attributes: dict[str, Any], group: int, offset_groups: int, with_mask_and_bias: bool, target: int
) -> None:
    data = RANDOM.standard_normal((2, 4, 6, 7)).astype(np.float32)
    weight = RANDOM.standard_normal((6, 4 // group, 2, 3)).astype(np.float32)
    pads, strides = attributes.get("pads", [0] * 4), attributes.get("strides", [1, 1])
    dilations = attributes.get("dilations", [1, 1])
    output_shape = [
        (data.shape[2 + i] + pads[i] + pads[i + 2] - (weight.shape[2 + i] - 1) * dilations[i] - 1)
        // strides[i]
        + 1
        for i in range(2)
    ]
    offset = RANDOM.uniform(-2, 2, (2, offset_groups * 12, *output_shape)).astype(np.float32)
    feeds: dict[str, Array] = {"x": data, "w": weight, "o": offset}
    inputs = ["x", "w", "o"]
    if with_mask_and_bias:
        feeds |= {"b": np.arange(6, dtype=np.float32)}
        feeds |= {"m": RANDOM.uniform(0, 1, (2, offset_groups * 6, *output_shape)).astype(np.float32)}
        inputs += ["b", "m"]
    attributes = {**attributes, "group": group, "offset_group": offset_groups}
    node = helper.make_node("DeformConv", inputs, ["y"], name="node", **attributes)
    convert_and_check(build([node], feeds, ["y"], 19), target, feeds, tolerance=1e-4)


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
