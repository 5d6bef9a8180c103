"""Element types that newer versions no longer support: such nodes are refused, all others stay unchanged."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build

from opshift import convert_version

NUMBERS = np.array([[1, 2, 3], [4, 5, 6]])
FLOATS = {"float16": np.float16, "float": np.float32, "double": np.float64}
INTEGERS = {
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
}
REDUCED = ("int32", "int64", "uint32", "uint64")
STEPS = [
    *(pytest.param("Erf", 9, 13, each, id=f"Erf of {each}") for each in INTEGERS),
    *(pytest.param("ReduceLogSum", 18, 28, each, id=f"ReduceLogSum of {each}") for each in REDUCED),
    *(pytest.param("ReduceLogSumExp", 18, 28, each, id=f"ReduceLogSumExp of {each}") for each in REDUCED),
]


def _model(op_type: str, opset: int, data: Array) -> onnx.ModelProto:
    element_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    return build(
        [helper.make_node(op_type, ["x"], ["y"], name="node")], {"x": data}, {"y": element_type}, opset
    )


@pytest.mark.parametrize(("op_type", "opset", "target", "type_name"), STEPS)
def test_refuses_integers(op_type: str, opset: int, target: int, type_name: str) -> None:
    refused = refusal_of(_model(op_type, opset, NUMBERS.astype(INTEGERS[type_name])), target)
    assert refused.reason == f"'x' is tensor({type_name}), which ai.onnx.{op_type}:{target} does not support"
    assert "to a supported type" in refused.remedy


def test_refuses_inferred_integer_types() -> None:
    cast = helper.make_node("Cast", ["x"], ["h"], to=6)
    erf = helper.make_node("Erf", ["h"], ["e"], name="node")
    back = helper.make_node("Cast", ["e"], ["y"], to=1)
    model = build([cast, erf, back], {"x": NUMBERS.astype(np.float32)}, ["y"], 9)
    assert refusal_of(model, 13).reason.startswith("'h' is tensor(int32)")


def test_keeps_integers_within_an_operator_version() -> None:
    model = _model("ReduceLogSum", 18, NUMBERS.astype(np.int32))
    assert convert_version(model, 27).graph == model.graph


def test_keeps_erf_of_floats() -> None:
    feeds = {"x": NUMBERS.astype(np.float32) / 4}
    model = _model("Erf", 9, feeds["x"])
    assert convert_and_check(model, 13, feeds).graph == model.graph


@pytest.mark.parametrize("type_name", FLOATS)
@pytest.mark.parametrize("op_type", ["ReduceLogSum", "ReduceLogSumExp"])
def test_keeps_reductions_of_floats(op_type: str, type_name: str) -> None:
    feeds = {"x": NUMBERS.astype(FLOATS[type_name])}
    model = _model(op_type, 18, feeds["x"])
    wide = feeds["x"].astype(np.float64)
    expected = np.log((np.exp(wide) if op_type == "ReduceLogSumExp" else wide).sum(keepdims=True))
    result = convert_and_check(model, 28, feeds, [expected.astype(FLOATS[type_name])], 1e-3)
    assert result.graph == model.graph


def test_keeps_nodes_of_unknown_type() -> None:
    """The unknown type may be a supported float type."""
    unknown = helper.make_node("Anything", ["x"], ["h"], domain="com.acme")
    erf = helper.make_node("Erf", ["h"], ["e"], name="node")
    last = helper.make_node("Abs", ["e"], ["y"])
    feeds = {"x": NUMBERS.astype(np.float32)}
    model = build([unknown, erf, last], feeds, ["y"], {"": 9, "com.acme": 1})
    assert convert_version(model, 13).graph == model.graph
