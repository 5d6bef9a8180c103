"""Trilu and EyeLike below their first opset."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check
from support.dynamic import with_symbolic_dims
from support.execution import Array, assert_equal, build, op_types, run_reference

RANDOM = np.random.default_rng(0)


def _element_type(array: Array) -> int:
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.bool_])
@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -2, 9])
@pytest.mark.parametrize(
    ("target", "is_k_constant", "is_shape_static"),
    [
        pytest.param(8, True, True, id="constant k"),
        pytest.param(7, False, True, id="computed k"),
        pytest.param(9, True, False, id="dynamic shape"),
        pytest.param(12, False, False, id="computed k and dynamic shape"),
    ],
)
def test_expands_trilu(
    k: int | None, upper: int, dtype: type, target: int, is_k_constant: bool, is_shape_static: bool
) -> None:
    data: Array = (
        RANDOM.integers(0, 2, (2, 3, 5)).astype(dtype) if dtype is np.bool_ else np.ones((2, 3, 5), dtype)
    )
    if dtype is np.float32:
        data[:, 0], data[:, 2] = math.nan, math.inf
    k_input: dict[str, Array] = {} if k is None else {"k": np.array(k, np.int64)}
    feeds: dict[str, Array] = {"x": data} if is_k_constant else {"x": data, **k_input}
    node = helper.make_node("Trilu", ["x", *k_input], ["y"], name="node", upper=upper)
    model = build(
        [node], feeds, {"y": _element_type(data)}, 14, initializers=k_input if is_k_constant else None
    )
    if not is_shape_static:
        for axis, dim in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
            dim.dim_param = f"n{axis}"
    expected = (np.triu if upper else np.tril)(data, k or 0)
    convert_and_check(model, target, feeds, [expected])


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param({}, np.eye(2, 3, dtype=np.int32), id="type of the input"),
        pytest.param({"k": 1, "dtype": TensorProto.FLOAT}, np.eye(2, 3, 1, np.float32), id="upper diagonal"),
        pytest.param({"k": -1, "dtype": TensorProto.BOOL}, np.eye(2, 3, -1, np.bool_), id="lower diagonal"),
    ],
)
def test_folds_eye_like_of_known_shape(attributes: dict[str, int], expected: Array) -> None:
    data: Array = np.zeros((2, 3), np.int32)
    node = helper.make_node("EyeLike", ["x"], ["y"], name="node", **attributes)
    model = build([node], {"x": data}, {"y": _element_type(expected)}, 9)
    assert op_types(convert_and_check(model, 8, {"x": data}, [expected])) == ["Identity"]


@pytest.mark.parametrize("target", [8, 7])
@pytest.mark.parametrize("size", [(3, 5), (5, 2), (1, 1), (0, 4)], ids=str)
@pytest.mark.parametrize(
    ("k", "dtype"),
    [
        pytest.param(0, np.float32, id="main diagonal"),
        pytest.param(2, np.int64, id="upper diagonal"),
        pytest.param(-1, np.float64, id="lower diagonal"),
    ],
)
def test_compares_columns_and_rows_of_unknown_sizes(
    k: int, dtype: type, size: tuple[int, int], target: int
) -> None:
    data: Array = np.zeros(size, np.float32)
    expected: Array = np.eye(*size, k, dtype)
    node = helper.make_node("EyeLike", ["x"], ["y"], name="node", k=k, dtype=_element_type(expected))
    model = build([node], {"x": data}, {"y": _element_type(expected)}, 9)
    symbolic = with_symbolic_dims(model)
    for each in (symbolic, build([node], {"x": data}, {"y": _element_type(expected)}, 9, shapes=False)):
        result = convert_and_check(each, target, {"x": data}, [expected])
        # onnx.reference cannot run a Loop without turns.
        if 0 not in size:
            assert_equal(run_reference(result, {"x": data}), [expected])
