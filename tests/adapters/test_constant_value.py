"""Constant: bare values become tensors before 12, and what is not floating point an initializer before 9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.running import build, op_types

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
VALUES = [
    pytest.param({"value_int": -7}, TensorProto.INT64, id="int"),
    pytest.param({"value_ints": [1, 2, 3]}, TensorProto.INT64, id="ints"),
    pytest.param({"value_float": 0.1}, TensorProto.FLOAT, id="float"),
    pytest.param({"value_floats": [0.5, float("inf")]}, TensorProto.FLOAT, id="floats"),
    pytest.param({"value_string": "text"}, TensorProto.STRING, id="string"),
    pytest.param({"value_strings": ["a", "b"]}, TensorProto.STRING, id="strings"),
    pytest.param({"value": numpy_helper.from_array(np.array([[True, False]]))}, TensorProto.BOOL, id="bools"),
    pytest.param({"value": numpy_helper.from_array(np.eye(2))}, TensorProto.DOUBLE, id="doubles"),
]


def _model(element: int, **attributes: Any) -> onnx.ModelProto:
    return build([helper.make_node("Constant", [], ["y"], name="node", **attributes)], {}, {"y": element}, 13)


@pytest.mark.parametrize("target", [12, 11, 10, 9, 8, 7])
@pytest.mark.parametrize(("attributes", "element"), VALUES)
def test_values(attributes: dict[str, Any], element: int, target: int, converted: Converted) -> None:
    result = converted(_model(element, **attributes), target, {})
    stated = [each.name for each in result.graph.node[0].attribute]
    is_kept = target > 8 or element in (TensorProto.FLOAT, TensorProto.DOUBLE)
    assert op_types(result) == ["Constant" if is_kept else "Identity"]
    assert stated == ([next(iter(attributes))] if target > 11 else ["value"] if is_kept else [])


@pytest.mark.parametrize("target", [11, 9])
def test_a_sparse_value(target: int, refusal: Refusing) -> None:
    values = numpy_helper.from_array(np.ones(1, np.float32), "values")
    indices = numpy_helper.from_array(np.zeros(1, np.int64))
    sparse = helper.make_sparse_tensor(values, indices, [3])
    model = _model(TensorProto.FLOAT, sparse_value=sparse)
    if target == 9:
        found = refusal(model, target)
        assert (found.reason, found.remedy) == ("the constant is sparse", "store the value as a dense tensor")
