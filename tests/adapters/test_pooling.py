"""LpPool and GlobalLpPool: a float exponent becomes a whole number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, helper
from support.running import Array, build

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
FEEDS = {"x": np.random.default_rng(0).standard_normal((2, 3, 6, 4)).astype(np.float32)}


def _model(op: str, **attributes: Any) -> onnx.ModelProto:
    return build([helper.make_node(op, ["x"], ["y"], name="node", **attributes)], FEEDS, ["y"], 1)


def _norm(data: Array, exponent: float, axes: tuple[int, ...]) -> Array:
    return np.asarray((np.abs(data) ** np.float32(exponent)).sum(axes) ** np.float32(1 / exponent))


def _windows(exponent: float) -> Array:
    """Windows of 2 by 2 that do not overlap."""
    return _norm(FEEDS["x"].reshape(2, 3, 3, 2, 2, 2), exponent, (3, 5))


WINDOW = {"kernel_shape": [2, 2], "strides": [2, 2]}
EXPONENTS: Mapping[str, tuple[Mapping[str, float], int]] = {
    "the default": ({}, 2),
    "the default, stated": ({"p": 2.0}, 2),
    "1": ({"p": 1.0}, 1),
    "3": ({"p": 3.0}, 3),
}


@pytest.mark.parametrize(("attributes", "exponent"), EXPONENTS.values(), ids=EXPONENTS)
@pytest.mark.parametrize("op", ["LpPool", "GlobalLpPool"])
def test_whole_exponents(
    op: str, attributes: Mapping[str, float], exponent: int, converted: Converted
) -> None:
    expected = _windows(exponent) if op == "LpPool" else _norm(FEEDS["x"], exponent, (2, 3))[..., None, None]
    model = _model(op, **attributes, **(WINDOW if op == "LpPool" else {}))
    for target in (2, 11, 18):
        (node,) = converted(model, target, FEEDS, [expected]).graph.node
        (stated,) = (each for each in node.attribute if each.name == "p")
        assert (stated.type, stated.i) == (AttributeProto.INT, exponent)


@pytest.mark.parametrize("exponent", [1.5, float("inf"), float("nan")], ids=str)
@pytest.mark.parametrize("op", ["LpPool", "GlobalLpPool"])
def test_other_exponents_are_refused(op: str, exponent: float, refusal: Refusing) -> None:
    model = _model(op, p=exponent, **(WINDOW if op == "LpPool" else {}))
    assert refusal(model, 2).reason == f"p is {exponent}; since version 2 it must be an integer"


def test_a_window_has_to_be_stated(refusal: Refusing) -> None:
    found = refusal(_model("LpPool"), 2)
    assert found.reason == "kernel_shape is missing, but LpPool-2 requires it"
    assert found.remedy == "set kernel_shape"
