"""Emitted nodes are checked against the types of their operator versions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser
from support.conversion import convert_and_check, refusal_of

from opshift import ConversionRefused, convert_version

REMEDY = "choose another target, or cast the values to a supported type if range and precision allow it"


def _model(graph: str) -> onnx.ModelProto:
    model: onnx.ModelProto = parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> test {graph}')
    return model


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("element_type", ["complex64", "complex128"])
def test_refuses_non_zero_of_complex(target: int, element_type: str) -> None:
    model = _model(f"({element_type}[2, 3] x) => (int64[] y) {{ y = NonZero (x) }}")
    refusal = refusal_of(model, target)
    assert f"the operator has no equivalent for {element_type}" in refusal.reason
    assert refusal.remedy == REMEDY


@pytest.mark.parametrize("target", [7, 8, 9])
def test_result_of_mod_in_bfloat16_is_refused_or_legal(target: int) -> None:
    model = _model("(bfloat16[2, 3] x, bfloat16[2, 3] z) => (bfloat16[] y) { y = Mod <fmod = 1> (x, z) }")
    try:
        result = convert_version(model, target, allow="approximate")
    except ConversionRefused as error:
        (refusal,) = error.refusals
        assert "bfloat16" in refusal.reason
        assert refusal.remedy
    else:
        onnx.checker.check_model(result, full_check=True)


@pytest.mark.parametrize("declared", ["", "<complex64[2, 3] a>"])
def test_reads_the_types_of_computed_values(declared: str) -> None:
    nodes = "a = Identity (x) y = NonZero (a)"
    model = _model(f"(complex64[2, 3] x) => (int64[] y) {declared} {{ {nodes} }}")
    assert "for complex64" in refusal_of(model, 8).reason


def test_one_cached_rewrite_serves_only_supported_types() -> None:
    nodes = "y = NonZero (x) w = NonZero (z) v = NonZero (x)"
    model = _model(f"(float[2, 3] x, complex64[2, 3] z) => (int64[] y) {{ {nodes} }}")
    refusal = refusal_of(model, 8)
    assert refusal.place == "graph, node NonZero -> w"


def test_converts_supported_types() -> None:
    data = np.array([[0, 1, 0], [2, 0, 3]], np.float32)
    model = _model("(float[2, 3] x) => (int64[] y) { y = NonZero (x) }")
    convert_and_check(model, 8, {"x": data})


def test_refuses_an_attribute_that_the_emitted_operator_does_not_define() -> None:
    node = 'y = Resize <mode = "nearest", unknown = 1> (x, , s)'
    model = _model(f"(float[2, 3] x) => (float[] y) <float[2] s = {{1, 1}}> {{ {node} }}")
    assert "'unknown'" in refusal_of(model, 11).reason
