"""Upgrades of Scan: version 8 has a batch dimension, later versions have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.running import Array, assert_equal, build, op_types, run_reference

from opshift import convert_version


def _body(*nodes: onnx.NodeProto) -> onnx.GraphProto:
    """Return a body that adds each row to a running sum; `nodes` compute the row of the scan output."""

    def value(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])

    add = helper.make_node("Add", ["sum_in", "row"], ["sum_out"], name="add")
    output_nodes = nodes or (helper.make_node("Identity", ["sum_out"], ["row_out"]),)
    names = (["sum_in", "row"], ["sum_out", "row_out"])
    inputs, outputs = ([value(each) for each in group] for group in names)
    return helper.make_graph([add, *output_nodes], "body", inputs, outputs)


def _model(
    body: onnx.GraphProto,
    feeds: dict[str, Array],
    outputs: Sequence[str] = ("total", "sums"),
    *,
    lengths: str = "",
    shapes: bool = True,
    **attributes: Any,
) -> onnx.ModelProto:
    inputs = [lengths, "start", "rows"]
    node = helper.make_node("Scan", inputs, outputs, name="node", body=body, num_scan_inputs=1, **attributes)
    return build([node], feeds, list(filter(None, outputs)), 8, shapes=shapes)


def _feeds(batch: int = 1) -> dict[str, Array]:
    random = np.random.default_rng(0)
    shapes = {"start": (batch, 3), "rows": (batch, 4, 3)}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("target", [9, 11, 13, 21])
@pytest.mark.parametrize(
    "attributes", [{}, {"directions": [0]}, {"directions": [1]}], ids=["default", "forward", "reverse"]
)
def test_removes_and_restores_the_batch_dimension(attributes: dict[str, Any], target: int) -> None:
    model = _model(_body(), _feeds(), **attributes)
    result = convert_and_check(model, target, _feeds())
    assert op_types(result) == ["Squeeze", "Squeeze", "Scan", "Unsqueeze", "Unsqueeze"]
    assert result.graph.input == model.graph.input
    assert result.graph.output == model.graph.output


@pytest.mark.parametrize("outputs", [("total", ""), ("", "sums")], ids=["state only", "rows only"])
def test_keeps_omitted_outputs(outputs: Sequence[str]) -> None:
    """Only onnx.reference runs such a node; onnxruntime does not."""
    model = convert_version(_model(_body(), _feeds(), outputs), 9)
    assert op_types(model) == ["Squeeze", "Squeeze", "Scan", "Unsqueeze"]
    sums = _feeds()["start"] + np.cumsum(_feeds()["rows"], 1)
    assert_equal(run_reference(model, _feeds()), [sums[:, -1] if outputs[0] else sums])


def test_converts_the_body() -> None:
    softmax = helper.make_node("Softmax", ["sum_out"], ["row_out"], name="softmax", axis=0)
    clip = helper.make_node("Clip", ["clipped"], ["row_out"], name="clip", min=0.0, max=1.0)
    softmax.output[0] = "clipped"
    feeds = _feeds()
    result = convert_and_check(_model(_body(softmax, clip), feeds), 21, feeds)
    (scan,) = (node for node in result.graph.node if node.op_type == "Scan")
    body = helper.get_node_attr_value(scan, "body")
    assert [node.name for node in body.node] == ["add", "softmax", "clip"]
    assert len(body.node[2].input) == 3


def test_one_declared_batch_size_suffices() -> None:
    model = _model(_body(), _feeds())
    model.graph.input[0].type.tensor_type.ClearField("shape")
    convert_and_check(model, 9, _feeds())


def test_refuses_sequence_lengths() -> None:
    model = _model(_body(), _feeds(), lengths="lengths")
    model.graph.input.append(helper.make_tensor_value_info("lengths", TensorProto.INT64, [1]))
    assert refusal_of(model, 9).reason == "input sequence_lens is used, which Scan-9 does not have"


@pytest.mark.parametrize(
    ("batch", "shapes"), [(2, True), (1, False)], ids=["batch size 2", "unknown batch size"]
)
def test_refuses_other_batch_sizes(batch: int, shapes: bool) -> None:
    refused = refusal_of(_model(_body(), _feeds(batch), shapes=shapes), 9)
    assert refused.reason == "Scan-9 has no batch dimension, and the batch size is not known to be 1"
    assert refused.remedy == "declare the shapes of the inputs with 1 as their first dimension"
