"""GatherElements and GatherND of sizes known only at run time, as Gather from flattened data."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, build, op_types

RANDOM = np.random.default_rng(0)


def _model(op_type: str, data: Array, indices: Array, **attributes: int) -> onnx.ModelProto:
    node = helper.make_node(op_type, ["x", "i"], ["y"], **attributes)
    return build([node], {"x": data, "i": indices}, ["y"], 13)


def _with_names(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace all dimensions of the inputs but the last by names."""
    for value in model.graph.input:
        for position, dim in enumerate(value.type.tensor_type.shape.dim[:-1]):
            dim.dim_param = f"{value.name}{position}"
    return model


@pytest.mark.parametrize("target", [10, 9, 8, 7])
@pytest.mark.parametrize("is_named", [True, False], ids=["named", "known"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("shape", "indices", "axis"),
    [
        ((3, 5), (3, 7), 1),
        ((3, 5), (2, 4), 0),
        ((2, 3, 4), (2, 3, 6), -1),
        ((2, 3, 4), (1, 5, 2), 1),
        ((2, 3, 4), (2, 0, 4), 1),
        ((2, 3, 4), (2, 3, 0), 2),
        ((0, 3, 4), (0, 3, 2), 2),
        ((2, 3, 2, 4), (4, 2, 1, 3), 0),
    ],
)
def test_gathers_elements(
    shape: tuple[int, ...],
    indices: tuple[int, ...],
    axis: int,
    dtype: type[np.signedinteger],
    is_named: bool,
    target: int,
) -> None:
    size = shape[axis]
    feeds: dict[str, Array] = {
        "x": RANDOM.normal(size=shape).astype(np.float32),
        "i": RANDOM.integers(-size, max(size, 1), indices).astype(dtype),
    }
    model = _model("GatherElements", feeds["x"], feeds["i"], axis=axis)
    result = convert_and_check(_with_names(model) if is_named else model, target, feeds)
    assert op_types(result)[-1] == "Gather"


@pytest.mark.parametrize("target", [10, 9, 8])
@pytest.mark.parametrize(
    ("shape", "indices", "last"),
    [
        ((3, 5), (4, 2), "Gather"),
        ((3, 5), (2, 0, 2), "Gather"),
        ((3, 5, 4), (2, 3, 2), "Gather"),
        ((3, 5, 4), (6, 1), "Reshape"),
        ((3, 0, 4), (6, 1), "Reshape"),
    ],
)
def test_gathers_rows(shape: tuple[int, ...], indices: tuple[int, ...], last: str, target: int) -> None:
    limits = np.array(shape[: indices[-1]])
    feeds: dict[str, Array] = {
        "x": RANDOM.normal(size=shape).astype(np.float32),
        "i": np.asarray(RANDOM.integers(-limits, np.maximum(limits, 1), indices)),
    }
    result = convert_and_check(_with_names(_model("GatherND", feeds["x"], feeds["i"])), target, feeds)
    assert op_types(result)[-1] == last
