"""Expansion of Resize with sizes known only at run time: axes that keep their size are left alone."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from support.conversion import convert_and_check

HEADER = """<ir_version: 6, opset_import: ["" : 11]>
main (float[N, 2, H, W] x, int64[2] sides) => (float[A, B, C, D] y)
<int64[1] zero = {0}, int64[1] two = {2}, int64[1] channels = {2}, int64[1] one = {1}, float[0] roi = {},
 float[4] scales = {1, 1, 2, 3}> {
"""
SIZES = "s = Shape (x) n = Gather <axis = 0> (s, zero)"
RESIZE = '<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">'
CASES = {
    "batch and channels": (f"{SIZES} all = Concat <axis = 0> (n, channels, sides)", {2, 3}),
    "slice of the shape": (
        "s = Shape (x) n = Slice (s, zero, two) all = Concat <axis = 0> (n, sides)",
        {2, 3},
    ),
    "other size": (f"{SIZES} m = Add (n, n) all = Concat <axis = 0> (m, channels, sides)", {0, 2, 3}),
    "other axis": (f"{SIZES} all = Concat <axis = 0> (n, n, sides)", {1, 2, 3}),
}


def _gathered_axes(model: onnx.ModelProto) -> set[int]:
    """Return the axes along which nodes gather pixels."""
    pixels, axes = {"x"}, set()
    for node in model.graph.node:
        if node.op_type in ("Add", "Gather", "Mul") and node.input[0] in pixels:
            pixels.update(node.output)
        if node.op_type == "Gather" and node.input[0] in pixels:
            axes.add(next((each.i for each in node.attribute if each.name == "axis"), 0))
    return axes


@pytest.mark.parametrize("target", [9, 7])
@pytest.mark.parametrize("shape", [(1, 2, 3, 4), (3, 2, 5, 1)])
@pytest.mark.parametrize("name", CASES)
def test_gathers_along_changed_axes(name: str, shape: tuple[int, ...], target: int) -> None:
    nodes, axes = CASES[name]
    model = onnx.parser.parse_model(
        f"{HEADER}{nodes} y = Resize {RESIZE} (x, roi, , all) }}".replace(", ,", ", roi,")
    )
    feeds = {"x": np.random.default_rng(0).random(shape, np.float32), "sides": np.array([6, 8])}
    converted = convert_and_check(model, target, feeds)
    assert _gathered_axes(converted) == axes


def test_keeps_axes_with_a_scale_of_1() -> None:
    model = onnx.parser.parse_model(f'{HEADER} y = Resize <mode = "linear"> (x, roi, scales) }}')
    feeds = {"x": np.random.default_rng(0).random((3, 2, 5, 4), np.float32), "sides": np.array([6, 8])}
    converted = convert_and_check(model, 9, feeds)
    assert _gathered_axes(converted) == {2, 3}
