"""Convert a model and compare its outputs, or expect a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import pytest

from opshift import ConversionRefused, convert_version
from opshift.converter.refusals import Refusal
from support.execution import Feeds, assert_equal, opset_of, run


def convert_and_check(
    model: onnx.ModelProto,
    target: int,
    feeds: Feeds,
    expected: Sequence[Any] | None = None,
    tolerance: float = 1e-5,
) -> onnx.ModelProto:
    """Convert a model and verify that the result is valid, keeps node names and computes the same outputs.

    `expected` replaces the outputs of the original model if no runtime can run it.
    """
    before = model.SerializeToString(deterministic=True)
    result = convert_version(model, target)
    assert model.SerializeToString(deterministic=True) == before
    assert opset_of(result) == target
    assert _node_names(result) == _node_names(model)
    outputs = run(result, feeds)
    assert_equal(outputs, run(model, feeds) if expected is None else expected, tolerance)
    _check_model(result, feeds, outputs)
    return result


def refusal_of(model: onnx.ModelProto, target: int) -> Refusal:
    """Return the refusal of the only node that cannot be converted."""
    before = model.SerializeToString(deterministic=True)
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, target)
    assert model.SerializeToString(deterministic=True) == before
    (found,) = caught.value.refusals
    return found


def _node_names(model: onnx.ModelProto) -> list[str]:
    return sorted(node.name for node in model.graph.node if node.name)


def _check_model(model: onnx.ModelProto, feeds: Feeds, outputs: Sequence[Any]) -> None:
    """Run ONNX's checker on a copy that declares the shape of every input and output."""
    declared = onnx.ModelProto()
    declared.CopyFrom(model)
    shapes = [feeds[each.name].shape for each in declared.graph.input if each.name in feeds]
    shapes += [output.shape for output in outputs]
    values = [each for each in declared.graph.input if each.name in feeds]
    for value, shape in zip([*values, *declared.graph.output], shapes, strict=True):
        del value.type.tensor_type.shape.dim[:]
        value.type.tensor_type.shape.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=n) for n in shape)
        value.type.tensor_type.shape.SetInParent()
    onnx.checker.check_model(declared, full_check=True)
