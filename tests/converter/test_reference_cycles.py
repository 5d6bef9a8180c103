"""Conversions leave no reference cycles: their objects are freed without the garbage collector."""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import build

from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused

FEEDS = {"x": np.ones((2, 3, 4), np.float32)}


def softmax() -> onnx.ModelProto:
    """Return a model with a step that queries a rank."""
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Softmax", ["a"], ["y"], axis=1)]
    return build(nodes, FEEDS, ["y"], 11)


def clip() -> onnx.ModelProto:
    """Return a model with a step that queries a type and adds a constant."""
    return build([helper.make_node("Clip", ["x"], ["y"], min=0.0)], FEEDS, ["y"], 9)


def einsum() -> onnx.ModelProto:
    """Return a model that no opset below 12 can express."""
    return build([helper.make_node("Einsum", ["x"], ["y"], equation="iij->j")], FEEDS, ["y"], 12)


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "target", "options"),
    [
        (softmax(), 18, {}),
        pytest.param(softmax(), 18, {"inplace": True}, marks=pytest.mark.full),
        pytest.param(softmax(), 9, {"ir_version": 4}, marks=pytest.mark.full),
        pytest.param(clip(), 18, {}, marks=pytest.mark.full),
        (einsum(), 8, {}),
    ],
)
def test_leaves_no_reference_cycles(model: onnx.ModelProto, target: int, options: dict[str, Any]) -> None:
    def run_conversion() -> None:
        source = onnx.ModelProto()
        source.CopyFrom(model)
        with suppress(ConversionRefused):
            convert_version(source, target, **options)

    run_conversion()  # fills the caches that outlive a conversion
    gc.collect()
    run_conversion()
    assert gc.collect() == 0
