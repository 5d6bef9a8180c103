"""Upgrade of Dropout: inference only from opset 7 to 11, and a boolean mask since opset 10."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, assert_equal, build, op_types, run

from opshift import convert_version

DATA = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)


def _dropout_node(outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Dropout", ["x"], outputs, name="node", **attributes)


def _model(opset: int, outputs: Sequence[str], element_type: int = 1, **attributes: Any) -> onnx.ModelProto:
    return build([_dropout_node(outputs, **attributes)], {"x": DATA}, {"y": element_type}, opset)


@pytest.mark.parametrize(
    ("opset", "outputs", "attributes"),
    [
        pytest.param(6, ["y"], {"is_test": 1}, id="version 6"),
        pytest.param(6, ["y", "mask"], {"is_test": 1, "ratio": 0.9}, id="version 6 with a mask"),
        pytest.param(1, ["y"], {"is_test": 1, "consumed_inputs": [0]}, id="version 1"),
        pytest.param(7, ["y"], {"ratio": 0.3}, id="version 7"),
        pytest.param(10, ["y"], {"ratio": 0.3}, id="version 10"),
    ],
)
@pytest.mark.parametrize("target", [7, 10, 12, 13, 22])
def test_preserves_data_in_inference(
    opset: int, outputs: Sequence[str], attributes: Mapping[str, Any], target: int
) -> None:
    if target <= opset:
        return
    result = convert_and_check(_model(opset, outputs, **attributes), target, {"x": DATA}, [DATA])
    assert op_types(result) == ["Dropout"]
    attribute_names = [each.name for each in result.graph.node[0].attribute]
    assert attribute_names == (["ratio"] if "ratio" in attributes and target < 12 else [])


@pytest.mark.parametrize("opset", [7, 10])
@pytest.mark.parametrize("ratio", [-0.5, 1.0, 1.5, float("nan")])
@pytest.mark.parametrize("outputs", [["y"], ["y", "mask"]])
def test_drops_a_ratio_that_runtimes_reject(opset: int, ratio: float, outputs: Sequence[str]) -> None:
    result = convert_and_check(_model(opset, outputs, ratio=ratio), 13, {"x": DATA}, [DATA])
    assert [list(each.input) for each in result.graph.node] == [["x"]]


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize("attributes", [{}, {"is_test": 0}], ids=["default", "explicit"])
def test_refuses_training(opset: int, attributes: Mapping[str, int]) -> None:
    refused = refusal_of(_model(opset, ["y"], **attributes), 7)
    assert refused.reason.startswith("is_test is 0, which drops elements at random")
    assert refused.remedy == "set is_test to 1 if the model is for inference"


def _model_with_mask(dtype: Any, consumers: Sequence[onnx.NodeProto], extra_output: str) -> onnx.ModelProto:
    data = DATA.astype(dtype)
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return build(
        [_dropout_node(["y", "mask"]), *consumers],
        {"x": data},
        {"y": element_type, extra_output: element_type},
        7,
    )


DTYPES = {"float": np.float32, "float16": np.float16, "double": np.float64}


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_casts_mask_read_by_a_node(dtype: Any) -> None:
    model = _model_with_mask(dtype, [helper.make_node("Sub", ["x", "mask"], ["z"], name="last")], "z")
    feeds = {"x": DATA.astype(dtype)}
    assert op_types(convert_and_check(model, 10, feeds, tolerance=1e-3)) == ["Dropout", "Cast", "Sub"]
    ones = feeds["x"] - dtype(1)
    convert_and_check(model, 13, feeds, [feeds["x"], ones])


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_casts_mask_returned_by_the_graph(dtype: Any) -> None:
    model, feeds = _model_with_mask(dtype, [], "mask"), {"x": DATA.astype(dtype)}
    result = convert_and_check(model, 10, feeds)
    assert op_types(result) == ["Dropout", "Cast"]
    assert [value.name for value in result.graph.output] == ["y", "mask"]
    convert_and_check(model, 13, feeds, [feeds["x"], np.ones_like(feeds["x"])])


def test_casts_mask_read_in_a_subgraph() -> None:
    """A node in a subgraph counts as a consumer."""
    value = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    branch = helper.make_graph([helper.make_node("Neg", ["mask"], ["z"])], "branch", [], [value])
    if_node = helper.make_node("If", ["c"], ["z"], name="last", then_branch=branch, else_branch=branch)
    feeds: dict[str, Array] = {"x": DATA, "c": np.array(True)}
    model = build([_dropout_node(["y", "mask"]), if_node], feeds, ["y", "z"], 7)
    assert "Cast" in op_types(convert_and_check(model, 10, feeds))


def test_drops_unused_mask() -> None:
    model = _model(7, ["y", "mask"])
    model.graph.value_info.append(helper.make_tensor_value_info("mask", TensorProto.FLOAT, DATA.shape))
    assert list(convert_and_check(model, 10, {"x": DATA}).graph.node[0].output) == ["y"]


def test_keeps_boolean_mask() -> None:
    model = build([_dropout_node(["y", "mask"])], {"x": DATA}, {"y": 1, "mask": TensorProto.BOOL}, 10)
    result = convert_and_check(model, 13, {"x": DATA}, [DATA, np.ones(DATA.shape, np.bool_)])
    assert op_types(result) == ["Dropout"]


def test_mask_of_a_removed_node_can_be_cast() -> None:
    """One step casts the mask, and a later one computes it for the Cast, which the model does not contain."""
    outputs = {"y": TensorProto.FLOAT, "mask": TensorProto.FLOAT}
    model = build([_dropout_node(["y", "mask"])], {"x": DATA}, outputs, 7)
    result = convert_version(model, without="ai.onnx.Dropout")
    assert_equal(run(result, {"x": DATA}), [DATA, np.ones_like(DATA)])


def test_refuses_mask_of_unknown_type() -> None:
    producer = helper.make_node("Anything", ["x"], ["h"], domain="com.acme")
    dropout = helper.make_node("Dropout", ["h"], ["y", "mask"], name="node")
    consumer = helper.make_node("Sub", ["y", "mask"], ["z"])
    model = build([producer, dropout, consumer], {"x": DATA}, ["z"], {"": 7, "com.acme": 1})
    assert refusal_of(model, 10).reason == "the element type of 'h' is unknown"


@pytest.mark.parametrize(
    ("ratio", "input_count"),
    [
        pytest.param(0.5, 1, id="default ratio"),
        pytest.param(0.25, 2, id="other ratio"),
    ],
)
def test_moves_ratio_to_float_input(ratio: float, input_count: int) -> None:
    """The ratio is float for every type of data."""
    model = build([_dropout_node(["y"], ratio=ratio)], {"x": DATA.astype(np.float64)}, {"y": 11}, 10)
    result = convert_version(model, 12)
    assert len(result.graph.node[0].input) == input_count
    assert all(each.data_type == TensorProto.FLOAT for each in result.graph.initializer)
    assert_equal(run(result, {"x": DATA.astype(np.float64)}), [DATA.astype(np.float64)])
