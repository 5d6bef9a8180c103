"""Resize with mode nearest to sizes known only at run time, as Gather along each axis."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from support.conversion import convert_and_check
from support.execution import op_types

COORDINATES = ("asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners")
MAX_NODES = {"asymmetric": 35, "half_pixel": 39, "pytorch_half_pixel": 49, "align_corners": 43}
"""Maximum number of nodes in opset 10 for each coordinate mode, if the coordinates are rounded down."""

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
    types = op_types(result)
    assert types[-2:] == ["Cast", "Gather"]
    gathers = [node for node in result.graph.node if node.op_type == "Gather"]
    assert gathers[-1].input[0] == gathers[-2].output[0]
    # Rows of the enlarged image are copied as a whole.
    assert [node.attribute[0].i for node in gathers[-2:]] == [3, 2]
    clamps = _clamping_operators(coordinates, rounding, is_broadcasting=target >= 8)
    assert {each: types.count(each) for each in clamps} == {each: 2 * n for each, n in clamps.items()}
    more_nodes = {"floor": 0, "ceil": 4}.get(rounding, 14)
    assert target < 10 or len(types) <= MAX_NODES[coordinates] + more_nodes


def _clamping_operators(coordinates: str, rounding: str, *, is_broadcasting: bool) -> dict[str, int]:
    """Return the number of operators for each axis that round and clamp its coordinates.

    The Cast to int64 rounds positive numbers down and numbers from -1 to 0 to 0, so that rounding down needs
    no other node, except to clamp at the last pixel.
    """
    is_floor, has_divisor = rounding == "floor", coordinates == "align_corners"
    rounds = {"Floor": int("round" in rounding), "Ceil": int(rounding == "ceil")}
    if is_broadcasting:
        return rounds | {"Relu": int(not is_floor), "Max": int(has_divisor), "Min": 1}
    return rounds | {"Relu": 1 + (not is_floor) + has_divisor, "Max": 0, "Min": 0}
