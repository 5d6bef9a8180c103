"""GreaterOrEqual and LessOrEqual before 12."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import build, op_types

Converted = Callable[..., onnx.ModelProto]
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
