"""Models whose inputs and outputs have other element types are compared by the types of the original."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import parser
from support.execution import one_node_model, run_reference

from opshift import VerificationFailed, convert_types, fit, verify
from opshift.analysis.verification.interface_casts import cast_value
from opshift.analysis.verification.numpy_types import array_element_type

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


def parse(graph: str, ir_version: int = 8, opset: int = 17) -> onnx.ModelProto:
    """Parse the graph of a valid model."""
    found = parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": {opset}]> g {graph}')
    onnx.checker.check_model(found)
    return found


DEFAULT = "(float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add (x, w) }"
X = np.array([1.1, -2], np.float32)

INTERFACES: dict[str, tuple[onnx.ModelProto, dict[str, Any]]] = {
    "weight that is an input": (parse(DEFAULT, ir_version=3, opset=8), {}),
    "default of an input": (parse(DEFAULT), {}),
    "given value instead of a default": (parse(DEFAULT), {"w": X}),
    "input that is an output": (parse("(float[2] x) => (float[2] x, float[2] y) { y = Neg (x) }"), {}),
    "weight that is an output": (
        parse("(float[2] x) => (float[2] y, float[2] w) <float[2] w = {1, 2}> { y = Add (x, w) }"),
        {},
    ),
    "branches with the names of outputs": (
        parse("""(float[2] x, bool c) => (float[2] y) {
            y = If (c) <
                then_branch = t () => (float[2] y) { y = Relu (x) },
                else_branch = e () => (float[2] y) { y = Neg (x) }
            >
        }"""),
        {},
    ),
    "Cast with a string attribute": (parse("(float[2] x) => (float[2] y) { y = Relu (x) }", 3, 5), {}),
    "sequence that is an input": (
        parse("(seq(float[2]) x, int64 i) => (float[2] y) { y = SequenceAt (x, i) }"),
        {"x": [X, X], "i": 1},
    ),
    "sequence that is an output": (
        parse("(float[2] x) => (seq(float[2]) y) { n = Neg (x) y = SequenceConstruct (x, n) }"),
        {},
    ),
    "optional that is an input": (
        parse("(optional(float[2]) x) => (float[2] y) { y = OptionalGetElement (x) }"),
        {"x": X},
    ),
}


@pytest.mark.parametrize("new", ["float16", "double"])
@pytest.mark.parametrize(("original", "inputs"), INTERFACES.values(), ids=INTERFACES)
def test_accepts_new_types_with(original: onnx.ModelProto, inputs: dict[str, Any], new: str) -> None:
    result = verify(original, convert_types(original, {"float": new}, allow="approximate"), inputs)
    assert result.equal
    assert {each.type for each in result.outputs} == {"float"}


def test_accepts_wider_types_of_a_fitted_model() -> None:
    original = parse("(bfloat16[2] x, bfloat16[2] w = {1, 2}) => (bfloat16[2] y) { y = Add (x, w) }", 10, 21)
    fitted = fit(original, "tract-0.23.9", allow="interface-types").model
    assert [each.type.tensor_type.elem_type for each in fitted.graph.input] == [onnx.TensorProto.FLOAT] * 2
    assert verify(original, fitted).equal


def test_replaces_defaults_only_by_given_values() -> None:
    original = parse(DEFAULT)
    converted = convert_types(original, "float=float16", allow="approximate")
    converted.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.array([1, 3], np.float16), "w"))
    with pytest.raises(VerificationFailed, match="output 'y' differs"):
        verify(original, converted)
    assert verify(original, converted, {"w": X}).equal


INFINITIES = [np.nan, np.inf, -np.inf]

CASTS = {
    "float to float16": (np.array([1.0004883, 1.0014648, 65519, 65520, -1e9, 1e-8, *INFINITIES], "f4"), "f2"),
    "double to float": (np.array([1 + 2**-24, 1 + 3 * 2**-24, 1e300, 1e-50, *INFINITIES]), "f4"),
    "float16 to double": (np.array([0.1, 6e4, *INFINITIES], "f2"), "f8"),
    "float to bfloat16": (np.array([1.00390625, 1.01171875, 3.4e38, *INFINITIES], "f4"), ml_dtypes.bfloat16),
    "bfloat16 to float": (np.array([0.1, 3e38, *INFINITIES], ml_dtypes.bfloat16), "f4"),
    **{
        f"float to {kind.__name__}": (np.array([1.0625, 1.1875, 500, -1e9, *INFINITIES], "f4"), kind)
        for kind in (
            ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz,
            ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz,
        )
    },
    "int64 to int32": (np.array([7, -7, 2**31, 2**40 + 1, -(2**63)]), "i4"),
}  # fmt: skip


@pytest.mark.parametrize(("array", "dtype"), CASTS.values(), ids=CASTS)
def test_rounds_as_cast(array: Any, dtype: Any) -> None:
    element = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    (expected,) = run_reference(one_node_model("Cast", 21, dtype, array, to=element), {"x0": array})
    found = cast_value(array, array_element_type(expected))
    assert found.dtype == expected.dtype
    # numpy does not recognize NaN of the types of ml_dtypes
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


def test_leaves_values_of_other_types() -> None:
    values = [np.array(["a"]), np.array([True]), np.array([1]), None, {"a": 1.5}]
    assert all(cast_value(each, "float16") is each for each in values)
