"""Models for opsets that no runtime here runs: valid there, and the same numbers after the way back up."""

from __future__ import annotations

import onnx

from opshift import convert_version
from support.running import Feeds, assert_equal, opset_of, run


def there_and_back(
    model: onnx.ModelProto, target: int, feeds: Feeds, back: int = 13, tolerance: float = 1e-5
) -> onnx.ModelProto:
    """The model at `target`, after seeing that it is valid there and means the same at opset `back`."""
    result = convert_version(model, target)
    assert opset_of(result) == target
    onnx.checker.check_model(_with_shapes(result, feeds))
    returned = convert_version(_with_shapes(result, feeds), back)
    assert_equal(run(returned, feeds), run(model, feeds), tolerance)
    return result


def _with_shapes(model: onnx.ModelProto, feeds: Feeds) -> onnx.ModelProto:
    """A copy that states the shape of its inputs, and that of every output as unknown sizes."""
    stated = onnx.ModelProto()
    stated.CopyFrom(model)
    for value in stated.graph.input:
        if value.name in feeds:
            del value.type.tensor_type.shape.dim[:]
            value.type.tensor_type.shape.SetInParent()
            for size in feeds[value.name].shape:
                value.type.tensor_type.shape.dim.add().dim_value = size
    for value in stated.graph.output:
        value.type.tensor_type.shape.SetInParent()
    return stated
