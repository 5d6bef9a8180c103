"""Types that a newer version takes no longer: such nodes are refused, all others stay as they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
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


def _model(op: str, opset: int, data: Array) -> onnx.ModelProto:
    element = helper.np_dtype_to_tensor_dtype(data.dtype)
    return build([helper.make_node(op, ["x"], ["y"], name="node")], {"x": data}, {"y": element}, opset)


@pytest.mark.parametrize(("op", "opset", "target", "kind"), STEPS)
def test_integers_are_refused(op: str, opset: int, target: int, kind: str, refusal: Refusing) -> None:
    found = refusal(_model(op, opset, NUMBERS.astype(INTEGERS[kind])), target)
    assert found.reason == f"'x' is tensor({kind}), which ai.onnx.{op}:{target} does not support"
    assert "to a supported type" in found.remedy


def test_a_type_that_follows_from_the_nodes_before_counts(refusal: Refusing) -> None:
    cast = helper.make_node("Cast", ["x"], ["h"], to=6)
    erf = helper.make_node("Erf", ["h"], ["e"], name="node")
    back = helper.make_node("Cast", ["e"], ["y"], to=1)
    model = build([cast, erf, back], {"x": NUMBERS.astype(np.float32)}, ["y"], 9)
    assert refusal(model, 13).reason.startswith("'h' is tensor(int32)")


def test_integers_stay_where_the_version_stays() -> None:
    model = _model("ReduceLogSum", 18, NUMBERS.astype(np.int32))
    assert convert_version(model, 27).graph == model.graph


def test_floats_of_erf_stay_as_they_are(converted: Converted) -> None:
    feeds = {"x": NUMBERS.astype(np.float32) / 4}
    model = _model("Erf", 9, feeds["x"])
    assert converted(model, 13, feeds).graph == model.graph


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("op", ["ReduceLogSum", "ReduceLogSumExp"])
def test_floats_of_reductions_stay_as_they_are(op: str, kind: str, converted: Converted) -> None:
    feeds = {"x": NUMBERS.astype(FLOATS[kind])}
    model = _model(op, 18, feeds["x"])
    wide = feeds["x"].astype(np.float64)
    expected = np.log((np.exp(wide) if op == "ReduceLogSumExp" else wide).sum(keepdims=True))
    result = converted(model, 28, feeds, [expected.astype(FLOATS[kind])], 1e-3)
    assert result.graph == model.graph


def test_an_unknown_type_is_no_reason_to_refuse() -> None:
    """Whoever names no type may mean a float."""
    unknown = helper.make_node("Anything", ["x"], ["h"], domain="com.acme")
    erf = helper.make_node("Erf", ["h"], ["e"], name="node")
    last = helper.make_node("Abs", ["e"], ["y"])
    feeds = {"x": NUMBERS.astype(np.float32)}
    model = build([unknown, erf, last], feeds, ["y"], {"": 9, "com.acme": 1})
    assert convert_version(model, 13).graph == model.graph
