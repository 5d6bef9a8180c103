"""Downgrade of GridSample to gathers from a pixel table."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.dynamic import with_symbolic_dims
from support.execution import assert_equal, build, op_types, run, run_reference
from support.forms import RANKED_FORMS, in_form

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


@pytest.mark.parametrize("align_corners", [0, 1], ids=["edges", "corners"])
def test_infinite_pixels_do_not_spread_beyond_the_border(align_corners: int) -> None:
    data = IMAGES.copy()
    data[..., 1] = np.inf
    feeds = {"x": data, "g": GRID * 2}
    model = _grid_sample_model(16, "bilinear", "border", align_corners=align_corners)
    expected = run(model, feeds)
    assert np.isfinite(expected[0]).any()
    assert_equal(run(convert_version(model, 15), feeds), expected, 1e-4)


@pytest.mark.parametrize("align_corners", [0, 1], ids=["edges", "corners"])
@pytest.mark.parametrize("target", [15, 8])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_infinite_and_nan_coordinates_mean_the_same(
    mode: str, padding: str, target: int, align_corners: int
) -> None:
    model = _grid_sample_model(20, mode, padding, align_corners=align_corners)
    grid = GRID.copy()
    grid[RANDOM.random(GRID.shape) < 0.3] = np.nan
    grid[RANDOM.random(GRID.shape) < 0.2] = np.inf
    grid[RANDOM.random(GRID.shape) < 0.2] = -np.inf
    feeds = {"x": IMAGES, "g": grid}
    result = convert_version(model, target, allow="approximate")
    assert_equal(run(result, feeds), run(model, feeds), 1e-4)


def test_refuses_cubic_grid_sample_with_border_padding() -> None:
    refused = refusal_of(_grid_sample_model(16, "bicubic", "border"), 15)
    assert refused.reason.startswith("for cubic interpolation, onnxruntime clamps pixels to the border")


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


UNKNOWN_SIZE_CASES = [
    (mode, padding, corners)
    for mode in ("nearest", "linear", "cubic")
    for padding in ("zeros", "border", "reflection")
    for corners in (0, 1)
    if (mode, padding) != ("cubic", "border")
]


@pytest.mark.some_cases(12)
@pytest.mark.parametrize(("mode", "padding", "corners"), UNKNOWN_SIZE_CASES)
@pytest.mark.parametrize("size", [(4, 5), (1, 3)], ids=str)
@pytest.mark.parametrize("target", [15, 8])
def test_downgrades_grid_sample_of_images_of_unknown_size(
    target: int, size: tuple[int, int], mode: str, padding: str, corners: int
) -> None:
    feeds = {"x": RANDOM.standard_normal((2, 3, *size)).astype(np.float32), "g": GRID}
    node = helper.make_node(
        "GridSample", ["x", "g"], ["y"], name="node", mode=mode, padding_mode=padding, align_corners=corners
    )
    model = with_symbolic_dims(build([node], feeds, ["y"], 20))
    result = convert_and_check(model, target, feeds, tolerance=1e-4)
    # onnx.reference divides by the extent of an axis, which is 0 for a single aligned pixel.
    if (padding, size[0], corners) != ("reflection", 1, 1):
        assert_equal(run_reference(result, feeds), run_reference(model, feeds), 1e-4)


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("unknown", [(1,), (2,), (3,), (0, 3)], ids=str)
def test_downgrades_grid_sample_of_partly_unknown_size(unknown: tuple[int, ...], form: str) -> None:
    feeds = {"x": IMAGES, "g": GRID}
    node = helper.make_node("GridSample", ["x", "g"], ["y"], name="node")
    model, fed = in_form(form, [node], feeds, {"y": onnx.TensorProto.FLOAT}, 16)
    for axis in unknown:
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"d{axis}"
    assert_equal(run(convert_version(model, 15), fed), run(model, fed))


def test_images_of_unknown_rank_have_two_dimensions() -> None:
    feeds = {"x": IMAGES, "g": GRID}
    node = helper.make_node("GridSample", ["x", "g"], ["y"], name="node")
    model, fed = in_form("no shapes", [node], feeds, {"y": onnx.TensorProto.FLOAT}, 16)
    assert_equal(run(convert_version(model, 15), fed), run(model, fed))


def test_downgrades_grid_sample_of_volumes_of_unknown_size() -> None:
    feeds = {
        "x": RANDOM.standard_normal((2, 3, 3, 4, 5)).astype(np.float32),
        "g": RANDOM.uniform(-1.5, 1.5, (2, 2, 3, 4, 3)).astype(np.float32),
    }
    node = helper.make_node("GridSample", ["x", "g"], ["y"], name="node")
    model = with_symbolic_dims(build([node], feeds, ["y"], 20))
    for target in (19, 9):
        convert_and_check(model, target, feeds, tolerance=1e-4)


def test_refuses_grid_sample_of_unknown_rank() -> None:
    node = helper.make_node("GridSample", ["x", "g"], ["y"], name="node")
    model = build([node], {"x": IMAGES, "g": GRID}, ["y"], 20, shapes=False)
    refused = refusal_of(model, 15)
    assert refused.reason == "the rank of 'x' is unknown"
    assert refused.remedy.startswith("declare the shape of 'x' with --shape x=...")
