"""Downgrade of DeformConv to gathers from a pixel table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, build

RANDOM = np.random.default_rng(0)


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


@pytest.mark.parametrize("target", [18, 11, 9])
@pytest.mark.parametrize("offset_groups", [1, 2])
def test_no_images(offset_groups: int, target: int) -> None:
    shapes = {"x": (0, 4, 6, 7), "w": (6, 4, 2, 3), "o": (0, 12 * offset_groups, 5, 5)}
    feeds: dict[str, Array] = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    node = helper.make_node("DeformConv", ["x", "w", "o"], ["y"], offset_group=offset_groups)
    convert_and_check(build([node], feeds, ["y"], 19), target, feeds)


@pytest.mark.parametrize("target", [18, 8])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e30, -1e30])
def test_infinite_and_nan_offsets_read_zeros(special: float, target: int) -> None:
    feeds: dict[str, Array] = {
        "x": RANDOM.standard_normal((1, 2, 5, 6)).astype(np.float32),
        "w": RANDOM.standard_normal((3, 2, 2, 2)).astype(np.float32),
        "o": RANDOM.uniform(-2, 2, (1, 8, 4, 5)).astype(np.float32),
    }
    feeds["o"][RANDOM.random(feeds["o"].shape) < 0.2] = special
    node = helper.make_node("DeformConv", list(feeds), ["y"], kernel_shape=[2, 2])
    convert_and_check(build([node], feeds, ["y"], 19), target, feeds)
