"""What the conversion of a plain graph needed is gone when it is done: it does not wait to be collected."""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import build

from opshift.converter.convert import convert_version
from opshift.converter.errors import ConversionRefused

FEEDS = {"x": np.ones((2, 3, 4), np.float32)}


def softmax() -> onnx.ModelProto:
    """Its step asks for ranks."""
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Softmax", ["a"], ["y"], axis=1)]
    return build(nodes, FEEDS, ["y"], 11)


def clip() -> onnx.ModelProto:
    """Its step asks for types and makes constants."""
    return build([helper.make_node("Clip", ["x"], ["y"], min=0.0)], FEEDS, ["y"], 9)


def einsum() -> onnx.ModelProto:
    """Nothing below 12 can stand for it."""
    return build([helper.make_node("Einsum", ["x"], ["y"], equation="iij->j")], FEEDS, ["y"], 12)


@pytest.mark.parametrize(
    ("model", "target", "options"),
    [
        (softmax(), 18, {}),
        (softmax(), 18, {"inplace": True}),
        (softmax(), 9, {"ir_version": 4}),
        (clip(), 18, {}),
        (einsum(), 8, {}),
    ],
)
def test_nothing_is_left_to_collect(model: onnx.ModelProto, target: int, options: dict[str, Any]) -> None:
    def work() -> None:
        given = onnx.ModelProto()
        given.CopyFrom(model)
        with suppress(ConversionRefused):
            convert_version(given, target, **options)

    work()  # what is kept for other models is made now
    gc.collect()
    work()
    assert gc.collect() == 0
