"""Antialiasing with computed scales: a matrix holds the weights of all pixels."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import Array, assert_equal, build, run

from opshift import convert_version, plan_version
from opshift.converter.options import AllowLike

RANDOM = np.random.default_rng(0)


def _model(
    data: Array, scales: list[float], **attributes: object
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], antialias=1, **attributes)
    feeds = {"x": data, "s": np.array(scales, np.float32)}
    return build([node], feeds, ["y"], 18), feeds


@pytest.mark.parametrize("target", [13, 10, 9])
@pytest.mark.parametrize("exclude_outside", [0, 1])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("scales", [[1, 1, 0.5, 0.25], [1, 1, 0.3, 2.0], [1, 1, 1.5, 0.7]])
def test_multiplies_by_a_matrix_of_weights(
    scales: list[float], mode: str, exclude_outside: int, target: int
) -> None:
    data = RANDOM.standard_normal((1, 2, 12, 9)).astype(np.float32)
    model, feeds = _model(data, scales, mode=mode, exclude_outside=exclude_outside)
    result = convert_version(model, target, allow="approximate")
    assert_equal(run(result, feeds), run(model, feeds), 1e-5)
    assert len(result.graph.node) < 300


@pytest.mark.parametrize("target", [17, 13, 10, 9, 7])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_infinite_pixels_do_not_spread(value: float, target: int) -> None:
    data = RANDOM.standard_normal((1, 2, 8, 6)).astype(np.float32)
    data[0, 0, 0, 1] = value
    model, feeds = _model(data, [1, 1, 0.5, 0.5], mode="linear")
    assert_equal(run(convert_version(model, target, allow="approximate"), feeds), run(model, feeds), 1e-5)


def test_reports_that_infinite_pixels_of_large_images_spread() -> None:
    """Infinity multiplied by a weight of 0 is NaN."""
    data = np.ones((1, 16, 300, 300), np.float32)
    data[0, :, 0, 0] = np.inf
    model, feeds = _model(data, [1, 1, 0.5, 1], mode="linear", exclude_outside=1)
    found = run(convert_version(model, 17, allow="approximate"), feeds)[0]
    assert np.isnan(found[0, :, :, 0]).all()
    reasons = [reason for _, reason in plan_version(model, 17, allow="approximate").allowances]
    assert any("one infinite or NaN pixel may make all of them NaN" in reason for reason in reasons)


@pytest.mark.parametrize("shape", [(1, 1, 200, 3), (2, 1, 3, 150)])
def test_accepts_hundreds_of_pixels(shape: tuple[int, ...]) -> None:
    data = RANDOM.standard_normal(shape).astype(np.float32)
    model, feeds = _model(data, [1, 1, 0.5, 0.5], mode="linear")
    result = convert_version(model, 13, allow="approximate")
    assert_equal(run(result, feeds), run(model, feeds), 1e-5)
    assert len(result.graph.node) < 200


@pytest.mark.parametrize("allow", [(), "approximate"], ids=["exact", "approximate"])
@pytest.mark.parametrize("exclude_outside", [0, 1])
def test_refuses_an_unknown_size(exclude_outside: int, allow: AllowLike) -> None:
    """A deviation is not asked for, because it does not help."""
    model, _ = _model(
        np.ones((1, 1, 5, 4), np.float32), [1, 1, 0.5, 1], mode="linear", exclude_outside=exclude_outside
    )
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "H"
    (refusal,) = plan_version(model, 13, allow=allow).refusals
    assert refusal.reason == "antialias is set, so the width of the filter depends on the unknown size of 'x'"
    assert refusal.remedy.startswith("declare the shape of 'x' [1, 1, H, 4] with --shape x=...")
    assert "or make scales an initializer that is not a graph input" in refusal.remedy


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_declared_shape_makes_the_conversion_to_computed_sizes_exact(mode: str) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["leading"], end=2),
        helper.make_node("Concat", ["leading", "trailing"], ["sizes"], axis=0),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode=mode, antialias=1),
    ]
    feeds = {"x": RANDOM.standard_normal((2, 3, 8, 8)).astype(np.float32)}
    model = build(nodes, feeds, ["y"], 18, initializers={"trailing": np.array([4, 4], np.int64)})
    for dim, name in zip(model.graph.input[0].type.tensor_type.shape.dim, "BCHW", strict=True):
        dim.dim_param = name
    (refusal,) = plan_version(model, 17).refusals
    assert refusal.remedy.startswith("declare the shape of 'x' [B, C, H, W] with --shape x=...")
    found = convert_version(model, 17, shapes={"x": ("B", 3, 8, 8)})
    assert_equal(run(found, feeds), run(model, feeds), 1e-5)
