"""Conversions to opsets that no runtime supports, verified by converting the result back."""

from __future__ import annotations

import onnx

from opshift import convert_version
from support.execution import Feeds, assert_equal, opset_of, run


def assert_round_trip(
    model: onnx.ModelProto, target: int, feeds: Feeds, back: int = 13, tolerance: float = 1e-5
) -> onnx.ModelProto:
    """Convert a model to `target`; assert that it is valid and computes the same outputs at opset `back`."""
    result = convert_version(model, target)
    assert opset_of(result) == target
    onnx.checker.check_model(_with_shapes(result, feeds))
    restored = convert_version(_with_shapes(result, feeds), back)
    assert_equal(run(restored, feeds), run(model, feeds), tolerance)
    return result


def _with_shapes(model: onnx.ModelProto, feeds: Feeds) -> onnx.ModelProto:
    """Return a copy with shapes of inputs, and empty shapes of outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        if value.name in feeds:
            del value.type.tensor_type.shape.dim[:]
            value.type.tensor_type.shape.SetInParent()
            for size in feeds[value.name].shape:
                value.type.tensor_type.shape.dim.add().dim_value = size
    for value in copy.graph.output:
        value.type.tensor_type.shape.SetInParent()
    return copy
