"""Tile: counts for every dimension become one node for each that is repeated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import helper, numpy_helper
from support.running import build

from opshift import convert_version
from opshift.converter.errors import Refusal

Refusing = Callable[..., Refusal]


@pytest.mark.parametrize("counts", [[2, 1, 3], [1, 1, 1], [1, 2, 1]], ids=["two", "none", "one"])
def test_one_dimension_after_another_before_6(counts: list[int]) -> None:
    """No runtime has version 1, whose inputs `tiles` and `axis` are numbers of the data's type."""
    data = np.zeros((2, 3, 4), np.float32)
    node = helper.make_node("Tile", ["x", "n"], ["y"], name="node")
    model = build([node], {"x": data}, ["y"], 6, initializers={"n": np.array(counts)})
    result = convert_version(model, 5)
    values = {
        each.name: float(numpy_helper.to_array(each)) for each in result.graph.initializer if each.name != "n"
    }
    found = [tuple(values[name] for name in each.input[1:]) for each in result.graph.node]
    expected: list[tuple[float, ...]] = [(n, axis) for axis, n in enumerate(counts) if n > 1]
    assert found == (expected or [()])


def test_whole_numbers_before_6(refusal: Refusing) -> None:
    data = np.zeros((2, 3), np.int64)
    node = helper.make_node("Tile", ["x", "n"], ["y"])
    model = build([node], {"x": data}, {"y": 7}, 6, initializers={"n": np.array([2, 2])})
    assert refusal(model, 5).reason == (
        "'x' has element type int64; Tile supports only floating point before opset 6"
    )
