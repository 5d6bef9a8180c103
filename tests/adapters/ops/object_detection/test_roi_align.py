"""Downgrade of RoiAlign: shifted boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.dynamic import with_symbolic_dims
from support.execution import Array, assert_equal, build, run, run_reference
from support.forms import RANKED_FORMS, in_form

from opshift import convert_version

IMAGE = np.random.default_rng(0).random((1, 2, 9, 8)).astype(np.float32)
BOXES = np.array([[0, 0, 7, 6], [2, 1, 6, 8], [3, 3, 4.5, 4.5]], np.float32)
BATCH_INDICES = {"b": np.zeros(3, np.int64)}


def _roi_align_model(
    boxes: Array, constant: bool = True, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds: dict[str, Array] = {"x": IMAGE} if constant else {"x": IMAGE, "rois": boxes}
    initializers = {**BATCH_INDICES, "rois": boxes} if constant else BATCH_INDICES
    node = helper.make_node(
        "RoiAlign", ["x", "rois", "b"], ["y"], name="node", output_height=3, output_width=2, **attributes
    )
    return build([node], feeds, ["y"], 16, initializers=initializers), feeds


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({}, id="half-pixel shift"),
        pytest.param({"sampling_ratio": 2}, id="sampling ratio"),
        pytest.param({"spatial_scale": 0.75}, id="spatial scale"),
        pytest.param({"coordinate_transformation_mode": "output_half_pixel"}, id="no shift"),
        pytest.param({"mode": "max"}, id="max mode"),
    ],
)
@pytest.mark.parametrize("target", [15, 10])
def test_shifts_constant_boxes(attributes: Mapping[str, Any], target: int) -> None:
    model, feeds = _roi_align_model(BOXES, **attributes)
    convert_and_check(model, target, feeds)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [0.75, 0.3, 1.0, 1.7])
@pytest.mark.parametrize("target", [15, 10])
def test_keeps_the_number_of_samples(dtype: type, scale: float, target: int) -> None:
    """Boxes whose pooled sizes are close to integers, where rounding changes the adaptive sampling."""
    corners = [[0, 0, size / scale, size / scale] for size in (2, 3, 4, 6)]
    boxes: Array = np.array(corners, dtype)
    image: Array = IMAGE.astype(dtype)
    node = helper.make_node(
        "RoiAlign", ["x", "rois", "b"], ["y"], output_height=2, output_width=3, spatial_scale=scale
    )
    constants = {"rois": boxes, "b": np.zeros(4, np.int64)}
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = build([node], {"x": image}, {"y": element_type}, 16, initializers=constants)
    convert_and_check(model, target, {"x": image}, tolerance=1e-3 if dtype is np.float16 else 1e-6)


SMALL_BOXES = np.array(
    [[3, 3, 3.4, 3.2], [-3, -2, 20, 4], [5, 5, 4, 4], [1, 1, 1, 1], [0, 0, 9, 8.5], [-9, -9, -5, -4]],
    np.float32,
)


@pytest.mark.some_cases(12)
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("samples", [0, 2])
@pytest.mark.parametrize("target", [15, 10, 9, 7])
@pytest.mark.parametrize("form", [form for form in RANKED_FORMS if form != "symbolic"])
def test_samples_boxes_of_any_size(form: str, target: int, samples: int, mode: str) -> None:
    feeds: dict[str, Array] = {"x": IMAGE, "rois": SMALL_BOXES, "b": np.zeros(6, np.int64)}
    attributes = {"output_height": 3, "output_width": 2, "sampling_ratio": samples, "spatial_scale": 0.75}
    node = helper.make_node("RoiAlign", list(feeds), ["y"], name="node", mode=mode, **attributes)
    model, fed = in_form(form, [node], feeds, {"y": 1}, 16)
    result = convert_version(model, target)
    for evaluate in (run, run_reference):
        assert_equal(evaluate(result, fed), evaluate(model, fed))


@pytest.mark.parametrize("target", [15, 9])
@pytest.mark.parametrize("samples", [0, 3])
@pytest.mark.parametrize("count", [0, 1, 6])
def test_samples_images_of_unknown_size(count: int, samples: int, target: int) -> None:
    model, _ = _roi_align_model(SMALL_BOXES, constant=False, sampling_ratio=samples)
    feeds: dict[str, Array] = {"x": IMAGE, "rois": SMALL_BOXES[:count], "b": np.zeros(count, np.int64)}
    del model.graph.initializer[:]
    model.graph.input.append(helper.make_tensor_value_info("b", onnx.TensorProto.INT64, [None]))
    convert_and_check(with_symbolic_dims(model), target, feeds)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("samples", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_boxes_below_opset_10(dtype: type, samples: int, mode: str) -> None:
    """Without the shift by half a pixel, boxes smaller than a pixel are enlarged."""
    feeds: dict[str, Array] = {
        "x": IMAGE.astype(dtype),
        "rois": SMALL_BOXES.astype(dtype),
        "b": np.zeros(6, np.int64),
    }
    node = helper.make_node("RoiAlign", list(feeds), ["y"], name="node", mode=mode, sampling_ratio=samples)
    model = build([node], feeds, {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}, 10)
    for target in (9, 8):
        convert_and_check(model, target, feeds)


def test_computes_float16_in_float() -> None:
    boxes: Array = SMALL_BOXES.astype(np.float16)
    feeds: dict[str, Array] = {"x": IMAGE.astype(np.float16), "rois": boxes, "b": np.zeros(6, np.int64)}
    node = helper.make_node("RoiAlign", list(feeds), ["y"], name="node", sampling_ratio=2)
    model = build([node], feeds, {"y": onnx.TensorProto.FLOAT16}, 16)
    expected = run_reference(model, feeds)
    assert_equal(run(convert_version(model, 15), feeds), expected, 2e-3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bins", [(1, 1), (7, 7), (2, 5)])
@pytest.mark.parametrize("target", [15, 9, 8])
def test_samples_each_box_by_its_size(target: int, bins: tuple[int, int], seed: int) -> None:
    """Each box has its own number of samples, from none to hundreds."""
    random = np.random.default_rng(seed)
    starts = random.uniform(-6, 20, (16, 2))
    corners = np.concatenate([starts, starts + random.uniform(0, 1, (16, 2)) ** 3 * 20], 1)
    feeds: dict[str, Array] = {
        "x": random.standard_normal((2, 3, 21, 17)).astype(np.float32),
        "rois": corners.astype(np.float32),
        "b": random.integers(0, 2, 16),
    }
    node = helper.make_node("RoiAlign", list(feeds), ["y"], output_height=bins[0], output_width=bins[1])
    result = convert_and_check(build([node], feeds, ["y"], 16), target, feeds)
    inner = [each for node in result.graph.node for each in node.attribute if each.type == each.GRAPH]
    assert len(result.graph.node) + sum(len(each.g.node) for each in inner) < 250


def test_refuses_huge_numbers_of_samples() -> None:
    model, _ = _roi_align_model(SMALL_BOXES, constant=False, sampling_ratio=10**9)
    assert refusal_of(model, 15).reason == "the node samples more than 65536 points along an axis"
