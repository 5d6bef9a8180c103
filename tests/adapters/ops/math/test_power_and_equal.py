"""Downgrades of Pow and Equal: element types that older versions do not support."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, assert_equal, build, op_types, run

from opshift import convert_version

DTYPES = {"float": np.float32, "double": np.float64, "int32": np.int32, "int64": np.int64}


def _pow_model(
    base: Array, exponent: Array, *, constant: bool = False
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds = {"x": base} if constant else {"x": base, "e": exponent}
    element_type = helper.np_dtype_to_tensor_dtype(base.dtype)
    node = helper.make_node("Pow", ["x", "e"], ["y"], name="node")
    initializers = {"e": exponent} if constant else {}
    return build([node], feeds, {"y": element_type}, 12, initializers=initializers), feeds


@pytest.mark.parametrize("exponent", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("base", [np.float32, np.float64, np.int32], ids=["float", "double", "int32"])
@pytest.mark.parametrize("target", [11, 7])
def test_computes_pow_of_mixed_types_in_double(base: Any, exponent: Any, target: int) -> None:
    model, feeds = _pow_model(np.array([1, 3, 7, -2]).astype(base), np.array([3, 5, 2, 3]).astype(exponent))
    convert_and_check(model, target, feeds)


def test_keeps_pow_of_floats() -> None:
    model, feeds = _pow_model(np.array([1.5, 3], np.float32), np.array([0.5, 2], np.float32))
    assert op_types(convert_and_check(model, 7, feeds)) == ["Pow"]


@pytest.mark.parametrize("exponent", [1, 2, 5])
def test_expands_small_powers_of_64_bit_integers_to_products(exponent: int) -> None:
    """The square of 3037000499 needs all 63 bits, more than a double can represent."""
    base = np.array([3037000499, -7, 0] if exponent < 3 else [5000, -7, 0], np.int64)
    model, feeds = _pow_model(base, np.array(exponent, np.int64), constant=True)
    result = convert_and_check(model, 11, feeds, [base**exponent])
    assert op_types(result) == (["Mul"] * (exponent - 1) or ["Identity"])


@pytest.mark.parametrize("exponent", [2, 3])
def test_small_powers_of_32_bit_integers_overflow_as_before(exponent: int) -> None:
    base = np.array([2000, 70000, -(2**31)], np.int32)
    model, feeds = _pow_model(base, np.array(exponent, np.int32), constant=True)
    for target in (11, 7):
        convert_and_check(model, target, feeds, [base**exponent])


def test_refuses_computed_powers_of_64_bit_integers_unless_approximate_is_allowed() -> None:
    model, feeds = _pow_model(np.array([3, 4], np.int64), np.array([2, 3], np.int64))
    assert refusal_of(model, 11).reason.startswith("a power of a 64-bit integer is computed in double")
    assert_equal(run(convert_version(model, 11, allow="approximate"), feeds), run(model, feeds))


SPECIAL_VALUES = [0.0, -0.0, 1.0, -3.5, np.inf, -np.inf, np.nan, 0.5]


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float", "double"])
@pytest.mark.parametrize("target", [10, 9, 7])
def test_expands_equal_of_floats(dtype: Any, target: int) -> None:
    """NaN differs from everything, infinities equal themselves, and the two zeros equal each other."""
    column = np.array(SPECIAL_VALUES, dtype).reshape(-1, 1)
    feeds = {"x": column, "z": column.reshape(1, -1)}
    node = helper.make_node("Equal", ["x", "z"], ["y"], name="node")
    convert_and_check(build([node], feeds, {"y": TensorProto.BOOL}, 11), target, feeds)


INTEGERS = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint32": np.uint32, "uint64": np.uint64}


@pytest.mark.parametrize("dtype", INTEGERS.values(), ids=INTEGERS)
def test_expands_equal_of_integers(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    feeds = {
        "x": np.array([0, limits.max, limits.min], dtype),
        "z": np.array([0, limits.max - 1, limits.max], dtype),
    }
    node = helper.make_node("Equal", ["x", "z"], ["y"], name="node")
    convert_and_check(build([node], feeds, {"y": TensorProto.BOOL}, 11), 7, feeds)


def test_refuses_equal_of_strings() -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.STRING, [2]) for name in ("x", "z")]
    output = helper.make_tensor_value_info("y", TensorProto.BOOL, [2])
    graph = helper.make_graph([helper.make_node("Equal", ["x", "z"], ["y"])], "test", values, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    assert refusal_of(model, 18).reason == "'x' is tensor(string), which ai.onnx.Equal:13 does not support"
