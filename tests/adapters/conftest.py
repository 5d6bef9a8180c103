"""What the tests of adapters share: a conversion that keeps the numbers, and one that is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx
import pytest
from support.running import Feeds, assert_equal, opset_of, run

from opshift import ConversionRefused, convert_version
from opshift.converter.errors import Refusal


@pytest.fixture(scope="session")
def converted() -> Callable[..., onnx.ModelProto]:
    return _converted


@pytest.fixture(scope="session")
def refusal() -> Callable[..., Refusal]:
    return _refusal


def _converted(
    model: onnx.ModelProto,
    target: int,
    feeds: Feeds,
    expected: Sequence[Any] | None = None,
    tolerance: float = 1e-5,
) -> onnx.ModelProto:
    """The model at `target`, after seeing that it is valid, keeps its names, and gives the same numbers.

    `expected` stands for the outputs of the original where no runtime runs it.
    """
    before = model.SerializeToString(deterministic=True)
    result = convert_version(model, target)
    assert model.SerializeToString(deterministic=True) == before
    assert opset_of(result) == target
    assert _names(result) == _names(model)
    outputs = run(result, feeds)
    assert_equal(outputs, run(model, feeds) if expected is None else expected, tolerance)
    _check(result, feeds, outputs)
    return result


def _refusal(model: onnx.ModelProto, target: int) -> Refusal:
    """Why the only node that cannot be converted cannot."""
    before = model.SerializeToString(deterministic=True)
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, target)
    assert model.SerializeToString(deterministic=True) == before
    (found,) = caught.value.refusals
    return found


def _names(model: onnx.ModelProto) -> list[str]:
    """The names of the nodes that have one, each of which stands for one node before and after."""
    return sorted(node.name for node in model.graph.node if node.name)


def _check(model: onnx.ModelProto, feeds: Feeds, outputs: Sequence[Any]) -> None:
    """Apply ONNX's checker, which wants to be told the shape of every input and output."""
    stated = onnx.ModelProto()
    stated.CopyFrom(model)
    shapes = [feeds[each.name].shape for each in stated.graph.input if each.name in feeds]
    shapes += [output.shape for output in outputs]
    values = [each for each in stated.graph.input if each.name in feeds]
    for value, shape in zip([*values, *stated.graph.output], shapes, strict=True):
        del value.type.tensor_type.shape.dim[:]
        value.type.tensor_type.shape.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=n) for n in shape)
        value.type.tensor_type.shape.SetInParent()
    onnx.checker.check_model(stated, full_check=True)
