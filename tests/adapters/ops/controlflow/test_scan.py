"""Upgrades of Scan: version 8 has a batch dimension, later versions have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.dynamic import with_symbolic_dims
from support.execution import Array, assert_equal, build, op_types, run_reference

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
    refused = refusal_of(model, 9)
    assert refused.reason == "input sequence_lens is used, which Scan-9 does not have"
    assert refused.remedy == "omit sequence_lens if all samples have the full length"


@pytest.mark.parametrize("target", [7, 9, 11, 13, 21])
@pytest.mark.parametrize("directions", [None, [1]], ids=["forward", "reverse"])
@pytest.mark.parametrize("form", ["declared", "symbolic", "no shapes"])
@pytest.mark.parametrize("batch", [1, 3])
def test_scans_the_samples_of_a_batch_in_a_loop(
    batch: int, form: str, directions: list[int] | None, target: int
) -> None:
    attributes: dict[str, Any] = {"directions": directions} if directions else {}
    feeds = _feeds(batch)
    model = _model(_body(), feeds, shapes=form != "no shapes", **attributes)
    if form == "symbolic":
        with_symbolic_dims(model)
    result = convert_and_check(model, target, feeds)
    assert "Loop" in op_types(result) or (batch, form) == (1, "declared")
    # onnx.reference supports no reverse Scan, and joins the scan outputs of a Loop instead of stacking them.
    if not directions:
        found = [
            array.reshape(shape)
            for array, shape in zip(run_reference(result, feeds), ((batch, 3), (batch, 4, 3)), strict=True)
        ]
        rows = np.cumsum(feeds["rows"], 1) + feeds["start"][:, None]
        assert_equal(found, [rows[:, -1], rows])


def test_scans_samples_with_values_of_the_graph() -> None:
    scaled = helper.make_node("Mul", ["sum_out", "scale"], ["row_out"])
    feeds = {**_feeds(3), "scale": np.array([1, -2, 0.5], np.float32)}
    model = _model(_body(scaled), feeds)
    for target in (9, 24):
        convert_and_check(model, target, feeds)
