"""Resize with mode nearest to sizes known only at run time, as Gather along each axis."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from support.conversion import convert_and_check
from support.execution import op_types

COORDINATES = ("asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners")
ROUNDINGS = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


@pytest.mark.parametrize("target", [10, 8, 7])
@pytest.mark.parametrize("size", [(6, 10), (3, 5), (2, 3), (1, 1), (7, 4)], ids=str)
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_reads_the_same_pixels(coordinates: str, rounding: str, size: tuple[int, int], target: int) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]>
        main (float[B, 2, H, W] x, float[K, L] like) => (float[B, 2, K, L] y) {{
            s = Shape <end = 2> (x) t = Shape (like) sizes = Concat <axis = 0> (s, t)
            y = Resize <mode = "nearest", nearest_mode = "{rounding}",
                coordinate_transformation_mode = "{coordinates}"> (x, , , sizes)
        }}"""
    )
    data = np.random.default_rng(0).normal(size=(1, 2, 3, 5)).astype(np.float32)
    data.flat[:3] = np.inf, -np.inf, np.nan
    feeds = {"x": data, "like": np.zeros(size, np.float32)}
    result = convert_and_check(model, target, feeds)
    assert op_types(result)[-2:] == ["Cast", "Gather"]
