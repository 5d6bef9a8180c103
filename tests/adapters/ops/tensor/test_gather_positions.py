"""GatherElements and GatherND of sizes known only at run time, as Gather from flattened data."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, assert_equal, build, op_types, run, run_reference

from opshift import convert_version

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


@pytest.mark.parametrize("target", [10, 7])
def test_computes_positions_along_long_axes(target: int) -> None:
    data = RANDOM.normal(size=(5000, 2)).astype(np.float32)
    feeds: dict[str, Array] = {"x": data, "i": RANDOM.integers(0, 2, (5000, 1))}
    result = convert_and_check(_model("GatherElements", data, feeds["i"], axis=1), target, feeds)
    assert result.ByteSize() < 4000


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


STRING_MODELS = [
    ("GatherND", {"i": np.array([[2], [0], [-1]])}, {}, (3, 2)),
    ("GatherND", {"i": np.array([[[2], [0]]])}, {}, (3, 2, 2)),
    ("GatherND", {"i": np.array([[2, 1], [0, 0]])}, {}, (3, 2, 4)),
    ("GatherND", {"i": np.array([[2, 1], [0, 0]])}, {}, (3, 2)),
    ("GatherND", {"i": np.zeros((2, 0, 1), np.int64)}, {}, (3, 2)),
    ("GatherND", {"i": np.array([[1], [0]])}, {"batch_dims": 1}, (2, 3, 4)),
    ("GatherElements", {"i": np.array([[2, -1], [0, 1]])}, {"axis": 0}, (3, 2)),
    ("ReverseSequence", {"n": np.array([1, 3, 2])}, {"batch_axis": 1, "time_axis": 0}, (4, 3, 2)),
    ("ReverseSequence", {"n": np.array([1, 3, 2])}, {"batch_axis": 0, "time_axis": 1}, (3, 4)),
    ("Compress", {"c": np.array([True, False, True])}, {"axis": 0}, (3, 2, 2)),
    ("Compress", {"c": np.array([True, False, True])}, {"axis": 1}, (2, 3, 2)),
    ("Compress", {"c": np.array([True, False, True])}, {}, (3, 2)),
]


@pytest.mark.parametrize("target", [10, 9, 8, 7])
@pytest.mark.parametrize("is_named", [True, False], ids=["named", "known"])
@pytest.mark.parametrize(("op_type", "inputs", "attributes", "shape"), STRING_MODELS)
def test_gathers_all_strings_of_rows(
    op_type: str,
    inputs: dict[str, Array],
    attributes: dict[str, int],
    shape: tuple[int, ...],
    is_named: bool,
    target: int,
) -> None:
    """For each index, onnxruntime's Gather copies only the first of the strings that follow the axis."""
    data = np.arange(np.prod(shape)).astype(str).astype(object).reshape(shape)
    feeds = {"x": data, **inputs}
    node = helper.make_node(op_type, list(feeds), ["y"], **attributes)
    model = build([node], feeds, {"y": onnx.TensorProto.STRING}, 13)
    if is_named and op_type != "ReverseSequence":
        model = _with_names(model)
    (expected,) = run_reference(model, feeds)
    result = convert_version(model, target)
    assert_equal(run(result, feeds), [expected])


@pytest.mark.parametrize("target", [9, 8, 7])
@pytest.mark.parametrize("is_constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize(("axes", "steps"), [([0], [2]), ([0], [-1]), ([0, 1], [-1, 2]), ([2], [-1])])
def test_slices_all_strings_of_rows(
    axes: list[int], steps: list[int], is_constant: bool, target: int
) -> None:
    data = np.arange(24).astype(str).astype(object).reshape(4, 3, 2)
    ends = [9 if step > 0 else -9 for step in steps]
    bounds = {"s": [0 if step > 0 else 8 for step in steps], "e": ends, "a": axes, "t": steps}
    values = {name: np.array(each, np.int64) for name, each in bounds.items()}
    node = helper.make_node("Slice", ["x", *values], ["y"])
    computed = {} if is_constant else {name: values.pop(name) for name in ("s", "e")}
    feeds = {"x": data, **computed}
    model = build([node], feeds, {"y": onnx.TensorProto.STRING}, 13, initializers=values)
    convert_and_check(model, target, feeds)
