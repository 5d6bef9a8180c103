"""Downgrades of Tile below opset 6: one node for each repeated dimension."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper
from support.conversion import refusal_of
from support.execution import build

from opshift import convert_version


@pytest.mark.parametrize("counts", [[2, 1, 3], [1, 1, 1], [1, 2, 1]], ids=["two", "none", "one"])
def test_tiles_one_dimension_per_node_before_opset_6(counts: list[int]) -> None:
    """No runtime implements Tile-1, whose inputs `tiles` and `axis` have the element type of the data."""
    data = np.zeros((2, 3, 4), np.float32)
    node = helper.make_node("Tile", ["x", "n"], ["y"], name="node")
    model = build([node], {"x": data}, ["y"], 6, initializers={"n": np.array(counts)})
    result = convert_version(model, 5)
    values = {
        each.name: float(numpy_helper.to_array(each)) for each in result.graph.initializer if each.name != "n"
    }
    tile_inputs = [tuple(values[name] for name in each.input[1:]) for each in result.graph.node]
    expected: list[tuple[float, ...]] = [(n, axis) for axis, n in enumerate(counts) if n > 1]
    assert tile_inputs == (expected or [()])


def test_refuses_integer_data_before_opset_6() -> None:
    data = np.zeros((2, 3), np.int64)
    node = helper.make_node("Tile", ["x", "n"], ["y"])
    model = build([node], {"x": data}, {"y": 7}, 6, initializers={"n": np.array([2, 2])})
    assert refusal_of(model, 5).reason == (
        "'x' has element type int64; Tile supports only floating point before opset 6"
    )
