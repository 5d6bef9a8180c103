"""Gemm on its way down: an addend that is left out, and one that is stretched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.old import there_and_back
from support.running import Array, build, op_types

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
RANDOM = np.random.default_rng(0)


def _model(
    opset: int,
    addend: tuple[int, ...] | None,
    kind: Any = np.float32,
    *,
    shapes: bool = True,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds: dict[str, Array] = {
        "a": RANDOM.random((2, 3)).astype(kind),
        "b": RANDOM.random((3, 4)).astype(kind),
    }
    if addend is not None:
        feeds["c"] = RANDOM.random(addend).astype(kind)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    node = helper.make_node("Gemm", list(feeds), ["y"], name="node", **attributes)
    return build([node], feeds, {"y": element}, opset, shapes=shapes), feeds


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["float", "double"])
@pytest.mark.parametrize("target", [10, 8, 7])
def test_no_addend_is_zero(kind: Any, target: int, converted: Converted) -> None:
    model, feeds = _model(11, None, kind, alpha=0.5)
    assert len(converted(model, target, feeds).graph.node[0].input) == 3


def test_an_addend_stays(converted: Converted) -> None:
    model, feeds = _model(11, (4,))
    assert op_types(converted(model, 7, feeds)) == ["Gemm"]


STRETCHED = [
    pytest.param((2, 4), ["Gemm"], id="the shape of the product"),
    pytest.param((4,), ["Gemm"], id="a row"),
    pytest.param((), ["Gemm"], id="a scalar"),
    pytest.param((1, 4), ["Reshape", "Gemm"], id="a row of two dimensions"),
    pytest.param((1, 1), ["Reshape", "Gemm"], id="one element"),
    pytest.param((2, 1), ["Gemm", "Mul", "Reshape", "Add"], id="a column"),
]


@pytest.mark.parametrize(("addend", "nodes"), STRETCHED)
@pytest.mark.parametrize("target", [6, 5])
def test_stretching(addend: tuple[int, ...], nodes: Sequence[str], target: int) -> None:
    model, feeds = _model(7, addend, beta=0.5, alpha=2.0)
    assert op_types(there_and_back(model, target, feeds)) == nodes


def test_an_unknown_shape_is_refused(refusal: Refusing) -> None:
    model, _ = _model(7, (2, 4), shapes=False)
    assert refusal(model, 6).reason == "the shape of 'c' is unknown, and it decides whether to broadcast"


def test_integers_are_refused_before_9(refusal: Refusing) -> None:
    model, _ = _model(11, (2, 4), np.int32)
    assert refusal(model, 8).reason == "'a' is tensor(int32), which ai.onnx.Gemm:7 does not support"
