"""GreaterOrEqual and LessOrEqual before 12; Greater and Less of integers before 9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import build, op_types

Converted = Callable[..., onnx.ModelProto]
WIDE = [0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 2, 2**63 - 1]
BORDERS = np.array([-np.inf, -1.0, 0.0, 1.0, np.inf, np.nan])


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("op", ["GreaterOrEqual", "LessOrEqual"])
def test_nothing_is_greater_than_nan_or_equal(op: str, kind: type[np.generic], converted: Converted) -> None:
    numbers = (BORDERS if kind is np.float32 else np.array([-3, 0, 4])).astype(kind)
    feeds = {"a": numbers[:, None], "b": numbers}
    model = build([helper.make_node(op, ["a", "b"], ["y"], name="node")], feeds, {"y": TensorProto.BOOL}, 12)
    result = converted(model, 11, feeds)
    assert op_types(result) == [op.removesuffix("OrEqual"), "Equal", "Or"]
    converted(model, 9, feeds)


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("op", ["Greater", "Less"])
@pytest.mark.parametrize("kind", [np.int8, np.uint32, np.int64, np.uint64], ids=lambda kind: kind.__name__)
def test_integers(kind: type[np.integer[Any]], op: str, target: int, converted: Converted) -> None:
    limit = np.iinfo(kind)
    numbers = [*WIDE, *(limit.max - each for each in WIDE), *(-1 - each for each in WIDE)]
    array = np.array(sorted({each for each in numbers if limit.min <= each <= limit.max}), kind)
    feeds = {"a": array[:, None], "b": array}
    model = build([helper.make_node(op, ["a", "b"], ["y"], name="node")], feeds, {"y": TensorProto.BOOL}, 9)
    expected = np.greater if op == "Greater" else np.less
    converted(model, target, feeds, [expected(feeds["a"], feeds["b"])])
