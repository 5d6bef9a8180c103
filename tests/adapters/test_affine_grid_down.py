"""AffineGrid before 20."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
SIZES = {"flat": (2, 3, 4, 5), "volume": (2, 3, 4, 5, 6)}


def _case(size: tuple[int, ...], corners: int, *, constant: bool) -> tuple[onnx.ModelProto, dict[str, Array]]:
    axes = len(size) - 2
    theta = np.random.default_rng(20).standard_normal((2, axes, axes + 1)).astype(np.float32)
    feeds, sizes = {"theta": theta}, {"size": np.array(size)}
    node = helper.make_node("AffineGrid", ["theta", "size"], ["y"], name="node", align_corners=corners)
    if constant:
        return build([node], feeds, ["y"], 20, initializers=sizes), feeds
    return build([node], feeds | sizes, ["y"], 20), feeds | sizes


@pytest.mark.parametrize("constant", [True, False], ids=["constant size", "computed size"])
@pytest.mark.parametrize("corners", [0, 1], ids=["outer edges", "centres of the corners"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_grid(size: tuple[int, ...], corners: int, constant: bool, converted: Converted) -> None:
    model, feeds = _case(size, corners, constant=constant)
    for target in (7 if constant else 9, 19):
        converted(model, target, feeds)


@pytest.mark.parametrize("size", [(2, 3, 1, 5), (2, 3, 1, 1), (2, 3, 1, 5, 1)])
def test_one_point_lies_on_the_last_corner(size: tuple[int, ...], converted: Converted) -> None:
    """Where it is not known that there is one, as in onnxruntime."""
    model, feeds = _case(size, 1, constant=False)
    for target in (8, 9, 12, 19):
        converted(model, target, feeds)


def test_one_point_between_two_corners_is_refused(refusal: Callable[..., Refusal]) -> None:
    model, _ = _case((2, 3, 1, 5), 1, constant=True)
    assert (
        refusal(model, 19).reason
        == "align_corners is 1, but one point between two corners has no defined position"
    )
