"""Expansion of AffineGrid below opset 20."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, assert_equal, build, run

from opshift import convert_version

SHAPES = {"2-D": (2, 3, 4, 5), "3-D": (2, 3, 4, 5, 6)}


def _case(
    size: tuple[int, ...], align_corners: int, *, constant: bool
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    spatial_rank = len(size) - 2
    theta = np.random.default_rng(20).standard_normal((2, spatial_rank, spatial_rank + 1)).astype(np.float32)
    feeds, sizes = {"theta": theta}, {"size": np.array(size)}
    node = helper.make_node("AffineGrid", ["theta", "size"], ["y"], name="node", align_corners=align_corners)
    if constant:
        return build([node], feeds, ["y"], 20, initializers=sizes), feeds
    return build([node], feeds | sizes, ["y"], 20), feeds | sizes


@pytest.mark.parametrize("constant", [True, False], ids=["constant size", "computed size"])
@pytest.mark.parametrize("align_corners", [0, 1], ids=["align_corners=0", "align_corners=1"])
@pytest.mark.parametrize("size", SHAPES.values(), ids=SHAPES)
def test_preserves_grid(size: tuple[int, ...], align_corners: int, constant: bool) -> None:
    model, feeds = _case(size, align_corners, constant=constant)
    for target in (7 if constant else 9, 19):
        convert_and_check(model, target, feeds)


@pytest.mark.parametrize("size", [(2, 3, 1, 5), (2, 3, 1, 1), (2, 3, 1, 5, 1)])
def test_places_single_point_at_last_corner(size: tuple[int, ...]) -> None:
    """The rewrite cannot refuse a computed number of points; onnxruntime uses the last corner too."""
    model, feeds = _case(size, 1, constant=False)
    for target in (8, 9, 12, 19):
        convert_and_check(model, target, feeds)


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("size", [(2, 1, 0, 3), (2, 1, 3, 0), (2, 1, 0, 2, 3)])
def test_accepts_constant_sizes_of_0(size: tuple[int, ...], align_corners: int) -> None:
    model, feeds = _case(size, align_corners, constant=True)
    grid = np.zeros((size[0], *size[2:], len(size) - 2), np.float32)
    for target in (7, 19):
        assert_equal(run(convert_version(model, target), feeds), [grid])


def test_refuses_single_point_between_corners() -> None:
    model, _ = _case((2, 3, 1, 5), 1, constant=True)
    assert (
        refusal_of(model, 19).reason
        == "align_corners is 1, but one point between two corners has no defined position"
    )
