"""Upgrades of LpPool and GlobalLpPool: a float exponent becomes an integer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build

FEEDS = {"x": np.random.default_rng(0).standard_normal((2, 3, 6, 4)).astype(np.float32)}


def _model(op_type: str, **attributes: Any) -> onnx.ModelProto:
    return build([helper.make_node(op_type, ["x"], ["y"], name="node", **attributes)], FEEDS, ["y"], 1)


def _norm(data: Array, exponent: float, axes: tuple[int, ...]) -> Array:
    return np.asarray((np.abs(data) ** np.float32(exponent)).sum(axes) ** np.float32(1 / exponent))


def _window_norms(exponent: float) -> Array:
    """Return the norms of non-overlapping 2x2 windows."""
    return _norm(FEEDS["x"].reshape(2, 3, 3, 2, 2, 2), exponent, (3, 5))


WINDOW = {"kernel_shape": [2, 2], "strides": [2, 2]}
EXPONENTS: Mapping[str, tuple[Mapping[str, float], int]] = {
    "default": ({}, 2),
    "explicit default": ({"p": 2.0}, 2),
    "1": ({"p": 1.0}, 1),
    "3": ({"p": 3.0}, 3),
}


@pytest.mark.parametrize(("attributes", "exponent"), EXPONENTS.values(), ids=EXPONENTS)
@pytest.mark.parametrize("op_type", ["LpPool", "GlobalLpPool"])
def test_converts_integral_exponents(op_type: str, attributes: Mapping[str, float], exponent: int) -> None:
    expected = (
        _window_norms(exponent)
        if op_type == "LpPool"
        else _norm(FEEDS["x"], exponent, (2, 3))[..., None, None]
    )
    model = _model(op_type, **attributes, **(WINDOW if op_type == "LpPool" else {}))
    for target in (2, 11, 18):
        (node,) = convert_and_check(model, target, FEEDS, [expected]).graph.node
        (attribute,) = (each for each in node.attribute if each.name == "p")
        assert (attribute.type, attribute.i) == (AttributeProto.INT, exponent)


@pytest.mark.parametrize("exponent", [1.5, float("inf"), float("nan")], ids=str)
@pytest.mark.parametrize("op_type", ["LpPool", "GlobalLpPool"])
def test_refuses_non_integral_exponents(op_type: str, exponent: float) -> None:
    model = _model(op_type, p=exponent, **(WINDOW if op_type == "LpPool" else {}))
    assert refusal_of(model, 2).reason == f"p is {exponent}; since version 2 it must be an integer"


def test_refuses_lp_pool_without_kernel_shape() -> None:
    refused = refusal_of(_model("LpPool"), 2)
    assert refused.reason == "kernel_shape is missing, but LpPool-2 requires it"
    assert refused.remedy == "set kernel_shape"
