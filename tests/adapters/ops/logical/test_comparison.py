"""GreaterOrEqual and LessOrEqual below opset 12; Greater and Less of integers below opset 9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check
from support.execution import build, op_types

LARGE_INTEGERS = [0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 2, 2**63 - 1]
SPECIAL_FLOATS = np.array([-np.inf, -1.0, 0.0, 1.0, np.inf, np.nan])


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("op", ["GreaterOrEqual", "LessOrEqual"])
def test_preserves_comparisons_with_nan(op: str, dtype: type[np.generic]) -> None:
    numbers = (SPECIAL_FLOATS if dtype is np.float32 else np.array([-3, 0, 4])).astype(dtype)
    feeds = {"a": numbers[:, None], "b": numbers}
    model = build([helper.make_node(op, ["a", "b"], ["y"], name="node")], feeds, {"y": TensorProto.BOOL}, 12)
    result = convert_and_check(model, 11, feeds)
    assert op_types(result) == [op.removesuffix("OrEqual"), "Equal", "Or"]
    convert_and_check(model, 9, feeds)


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("op", ["Greater", "Less"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.int64, np.uint64], ids=lambda dtype: dtype.__name__)
def test_compares_integers(dtype: type[np.integer[Any]], op: str, target: int) -> None:
    limits = np.iinfo(dtype)
    numbers = [
        *LARGE_INTEGERS,
        *(limits.max - each for each in LARGE_INTEGERS),
        *(-1 - each for each in LARGE_INTEGERS),
    ]
    operand = np.array(sorted({each for each in numbers if limits.min <= each <= limits.max}), dtype)
    feeds = {"a": operand[:, None], "b": operand}
    model = build([helper.make_node(op, ["a", "b"], ["y"], name="node")], feeds, {"y": TensorProto.BOOL}, 9)
    expected = np.greater if op == "Greater" else np.less
    convert_and_check(model, target, feeds, [expected(feeds["a"], feeds["b"])])


@pytest.mark.parametrize("op", ["Greater", "Less"])
def test_compares_integers_without_a_sign_by_their_difference(op: str) -> None:
    numbers = np.array(LARGE_INTEGERS)[:, None]
    feeds = {"x": np.zeros((0, 1, 3), np.float32)}
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node(op, ["a", "s"], ["y"], name="node")]
    model = build(nodes, feeds, {"y": TensorProto.BOOL}, 9, initializers={"a": numbers})
    expected = np.greater if op == "Greater" else np.less
    result = convert_and_check(model, 7, feeds, [expected(numbers, [0, 1, 3])])
    assert op_types(result) == ["Shape", "Sub", "Cast", op]
