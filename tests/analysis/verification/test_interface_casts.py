"""Models whose inputs and outputs have other element types are compared by the types of the original."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

from opshift import VerificationFailed, convert_types, verify

TEXT = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[N, 4] x, bool c) => (float[N, 4] y, float[N, 4] z) {
        h = MatMul (x, w)
        y = If (c) <
            then_branch = t () => (float[N, 4] a) { a = Add (h, x) },
            else_branch = e () => (float[N, 4] b) { b = Neg (x) }
        >
        z = Relu (y)
    }
"""


@pytest.fixture
def model() -> onnx.ModelProto:
    found = parser.parse_model(TEXT)
    weight = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    found.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    return found


@pytest.mark.parametrize(("new", "relative"), [("float16", 1e-2), ("double", 1e-4)])
def test_compares_with_the_tolerance_of_the_less_precise_type(
    model: onnx.ModelProto, new: str, relative: float
) -> None:
    result = verify(model, convert_types(model, {"float": new}, allow="approximate"))
    assert result.equal
    assert [each.tolerance.relative for each in result.outputs] == [relative, relative]
    assert [each.type for each in result.outputs] == ["float", "float"]


def test_finds_the_first_node_that_differs(model: onnx.ModelProto) -> None:
    changed = convert_types(model, "float=float16", allow="approximate")
    changed.graph.node[-1].op_type = "Abs"
    with pytest.raises(VerificationFailed, match="Relu"):
        verify(model, changed)
