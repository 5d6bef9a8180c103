"""Dropout: inference only between 7 and 12, and a mask that becomes boolean at 10."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, assert_equal, build, op_types, run

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
DATA = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)


def _dropout(outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Dropout", ["x"], outputs, name="node", **attributes)


def _model(opset: int, outputs: Sequence[str], kind: int = 1, **attributes: Any) -> onnx.ModelProto:
    return build([_dropout(outputs, **attributes)], {"x": DATA}, {"y": kind}, opset)


@pytest.mark.parametrize(
    ("opset", "outputs", "attributes"),
    [
        pytest.param(6, ["y"], {"is_test": 1}, id="6 for inference"),
        pytest.param(6, ["y", "mask"], {"is_test": 1, "ratio": 0.9}, id="6 for inference, with a mask"),
        pytest.param(1, ["y"], {"is_test": 1, "consumed_inputs": [0]}, id="1 for inference"),
        pytest.param(7, ["y"], {"ratio": 0.3}, id="7"),
        pytest.param(10, ["y"], {"ratio": 0.3}, id="10"),
    ],
)
@pytest.mark.parametrize("target", [7, 10, 12, 13, 22])
def test_inference_passes_the_data_on(
    opset: int, outputs: Sequence[str], attributes: Mapping[str, Any], target: int, converted: Converted
) -> None:
    if target <= opset:
        return
    result = converted(_model(opset, outputs, **attributes), target, {"x": DATA}, [DATA])
    assert op_types(result) == ["Dropout"]
    stated = [each.name for each in result.graph.node[0].attribute]
    assert stated == (["ratio"] if "ratio" in attributes and target < 12 else [])


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize("attributes", [{}, {"is_test": 0}], ids=["left out", "stated"])
def test_dropping_at_random_is_refused(opset: int, attributes: Mapping[str, int], refusal: Refusing) -> None:
    found = refusal(_model(opset, ["y"], **attributes), 7)
    assert found.reason.startswith("is_test is 0, which drops elements at random")
    assert found.remedy == "set is_test to 1 if the model is for inference"


def _with_mask(kind: Any, last: Sequence[onnx.NodeProto], result: str) -> onnx.ModelProto:
    data = DATA.astype(kind)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    return build([_dropout(["y", "mask"]), *last], {"x": data}, {"y": element, result: element}, 7)


KINDS = {"float": np.float32, "float16": np.float16, "double": np.float64}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_mask_that_a_node_reads_keeps_the_type_of_the_data(kind: Any, converted: Converted) -> None:
    model = _with_mask(kind, [helper.make_node("Sub", ["x", "mask"], ["z"], name="last")], "z")
    feeds = {"x": DATA.astype(kind)}
    assert op_types(converted(model, 10, feeds, tolerance=1e-3)) == ["Dropout", "Cast", "Sub"]
    ones = feeds["x"] - kind(1)
    converted(model, 13, feeds, [feeds["x"], ones])


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_mask_that_the_graph_returns_keeps_its_type(kind: Any, converted: Converted) -> None:
    model, feeds = _with_mask(kind, [], "mask"), {"x": DATA.astype(kind)}
    result = converted(model, 10, feeds)
    assert op_types(result) == ["Dropout", "Cast"]
    assert [value.name for value in result.graph.output] == ["y", "mask"]
    converted(model, 13, feeds, [feeds["x"], np.ones_like(feeds["x"])])


def test_a_mask_that_only_a_branch_reads_is_cast(converted: Converted) -> None:
    """A node of a graph within counts as a reader."""
    value = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    branch = helper.make_graph([helper.make_node("Neg", ["mask"], ["z"])], "branch", [], [value])
    choice = helper.make_node("If", ["c"], ["z"], name="last", then_branch=branch, else_branch=branch)
    feeds: dict[str, Array] = {"x": DATA, "c": np.array(True)}
    model = build([_dropout(["y", "mask"]), choice], feeds, ["y", "z"], 7)
    assert "Cast" in op_types(converted(model, 10, feeds))


def test_a_mask_that_nothing_reads_is_left_out(converted: Converted) -> None:
    model = _model(7, ["y", "mask"])
    model.graph.value_info.append(helper.make_tensor_value_info("mask", TensorProto.FLOAT, DATA.shape))
    assert list(converted(model, 10, {"x": DATA}).graph.node[0].output) == ["y"]


def test_a_mask_that_is_boolean_already_stays(converted: Converted) -> None:
    model = build([_dropout(["y", "mask"])], {"x": DATA}, {"y": 1, "mask": TensorProto.BOOL}, 10)
    result = converted(model, 13, {"x": DATA}, [DATA, np.ones(DATA.shape, np.bool_)])
    assert op_types(result) == ["Dropout"]


def test_the_type_of_a_mask_has_to_be_known(refusal: Refusing) -> None:
    unknown = helper.make_node("Anything", ["x"], ["h"], domain="com.acme")
    drop = helper.make_node("Dropout", ["h"], ["y", "mask"], name="node")
    last = helper.make_node("Sub", ["y", "mask"], ["z"])
    model = build([unknown, drop, last], {"x": DATA}, ["z"], {"": 7, "com.acme": 1})
    assert refusal(model, 10).reason == "the element type of 'h' is unknown"


@pytest.mark.parametrize(
    ("ratio", "inputs"),
    [
        pytest.param(0.5, 1, id="the default is left out"),
        pytest.param(0.25, 2, id="another becomes an input"),
    ],
)
def test_a_ratio_becomes_a_float_input(ratio: float, inputs: int) -> None:
    """Whatever the type of the data is."""
    model = build([_dropout(["y"], ratio=ratio)], {"x": DATA.astype(np.float64)}, {"y": 11}, 10)
    moved = convert_version(model, 12)
    assert len(moved.graph.node[0].input) == inputs
    assert all(each.data_type == TensorProto.FLOAT for each in moved.graph.initializer)
    assert_equal(run(moved, {"x": DATA.astype(np.float64)}), [DATA.astype(np.float64)])
