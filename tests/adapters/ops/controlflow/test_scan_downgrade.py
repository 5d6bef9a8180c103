"""Downgrades of Scan and Loop: a batch of one, scan axes and directions, and carried values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check
from support.execution import Array, build, op_types

from opshift import convert_version

FEEDS: Mapping[str, Array] = {
    "s": np.zeros(2, np.float32),
    "x": np.arange(6, dtype=np.float32).reshape(3, 2),
}


def _value(
    name: str, shape: Sequence[int] = (2,), element_type: int = TensorProto.FLOAT
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, shape)


def _scan_model(opset: int, feeds: Mapping[str, Array] = FEEDS, **attributes: Any) -> onnx.ModelProto:
    """Return a model of running sums over the rows, or over the dimension that the scan axes select."""
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [_value("a"), _value("b")],
        [_value("c"), _value("d")],
    )
    node = helper.make_node(
        "Scan", ["s", "x"], ["t", "y"], name="node", num_scan_inputs=1, body=body, **attributes
    )
    return build([node], feeds, ["t", "y"], opset)


def _stateless_loop() -> onnx.ModelProto:
    body = helper.make_graph(
        [helper.make_node("Identity", ["b"], ["c"]), helper.make_node("Neg", ["x"], ["d"])],
        "body",
        [_value("a", (), TensorProto.INT64), _value("b", (), TensorProto.BOOL)],
        [_value("c", (), TensorProto.BOOL), _value("d")],
    )
    feeds = {"n": np.array(3), "x": FEEDS["s"]}
    return build([helper.make_node("Loop", ["n", ""], ["y"], body=body)], feeds, ["y"], 11)


COLUMNS = {"s": FEEDS["s"], "x": FEEDS["x"].T.copy()}


@pytest.mark.parametrize(
    ("feeds", "attributes"),
    [
        pytest.param(FEEDS, {}, id="rows"),
        pytest.param(FEEDS, {"scan_input_directions": [1]}, id="rows in reverse"),
        pytest.param(COLUMNS, {"scan_input_axes": [1]}, id="columns"),
        pytest.param(COLUMNS, {"scan_input_axes": [-1]}, id="columns by a negative axis"),
        pytest.param(FEEDS, {"scan_output_axes": [1]}, id="output columns"),
        pytest.param(
            FEEDS,
            {"scan_output_axes": [-1], "scan_output_directions": [0]},
            id="output columns by a negative axis",
        ),
        pytest.param(FEEDS, {"scan_output_directions": [1]}, id="output in reverse"),
        pytest.param(
            COLUMNS,
            {"scan_input_axes": [1], "scan_input_directions": [1], "scan_output_axes": [1]}
            | {"scan_output_directions": [1]},
            id="columns in reverse to output columns in reverse",
        ),
    ],
)
@pytest.mark.parametrize("target", [10, 9, 8, 7])
def test_downgrades_scan(feeds: Mapping[str, Array], attributes: Mapping[str, Any], target: int) -> None:
    model = _scan_model(11, feeds, **attributes)
    result = convert_and_check(model, target, feeds)
    assert ("Loop" in op_types(result)) == (target < 9)


@pytest.mark.parametrize("target", [8, 7])
def test_downgrades_a_body_without_declared_types(target: int) -> None:
    model = _scan_model(9)
    body = next(each.g for each in model.graph.node[0].attribute if each.name == "body")
    for value in (*body.input, *body.output):
        value.ClearField("type")
    convert_and_check(model, target, FEEDS)


def _described(*values: onnx.ValueInfoProto) -> None:
    for each in values:
        each.doc_string = f"doc of {each.name}"
        each.metadata_props.add(key="key", value=each.name)


def _descriptions(values: Sequence[onnx.ValueInfoProto]) -> list[str]:
    """Return the doc strings of described values, whose metadata has the same source."""
    found = [each for each in values if each.doc_string]
    assert all([item.value for item in each.metadata_props] == [each.doc_string[-1]] for each in found)
    return [each.doc_string for each in found]


@pytest.mark.parametrize("op_type", ["Scan", "Loop"])
def test_keeps_the_descriptions_in_a_body(op_type: str) -> None:
    model = _scan_model(9) if op_type == "Scan" else _stateless_loop()
    body = next(each.g for each in model.graph.node[0].attribute if each.name == "body")
    body.name, body.doc_string = "steps", "doc of the body"
    _described(*body.input, *body.output)
    model.ir_version = 10
    result = convert_version(model, 8, ir_version=10)
    (loop,) = (each for each in result.graph.node if each.op_type == "Loop")
    (found,) = (each.g for each in loop.attribute)
    assert (found.name, found.doc_string) == ("steps", "doc of the body")
    described = _descriptions(found.input) + _descriptions(found.value_info)
    assert sorted(described) == sorted(each.doc_string for each in body.input)
    assert _descriptions(found.output) == [each.doc_string for each in body.output]


def test_downgrades_scan_without_state() -> None:
    body = helper.make_graph([helper.make_node("Neg", ["a"], ["b"])], "body", [_value("a")], [_value("b")])
    node = helper.make_node("Scan", ["x"], ["y"], name="node", num_scan_inputs=1, body=body)
    feeds = {"x": FEEDS["x"]}
    convert_and_check(build([node], feeds, ["y"], 9), 8, feeds)


def test_downgrades_a_batch_of_one() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [_value("a"), _value("b")],
        [_value("c"), _value("d")],
    )
    node = helper.make_node("Scan", ["", "s", "x"], ["t", "y"], name="node", num_scan_inputs=1, body=body)
    feeds = {name: array[None] for name, array in FEEDS.items()}
    convert_and_check(build([node], feeds, ["t", "y"], 8), 7, feeds)


def _loop_model(has_carried_value: bool) -> onnx.ModelProto:
    """Return a loop of three iterations, which doubles the carried value if there is one."""
    inputs = [_value("i", (), TensorProto.INT64), _value("go", (), TensorProto.BOOL)]
    nodes = [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Identity", ["x"], ["row"])]
    outputs = [_value("on", (), TensorProto.BOOL)]
    if has_carried_value:
        inputs.append(_value("a"))
        nodes.append(helper.make_node("Add", ["a", "a"], ["b"]))
        outputs.append(_value("b"))
    body = helper.make_graph(nodes, "body", inputs, [*outputs, _value("row", (3, 2))])
    names = ["t", "y"] if has_carried_value else ["y"]
    node = helper.make_node(
        "Loop", ["m", "", *(["s"] if has_carried_value else [])], names, name="node", body=body
    )
    return build([node], FEEDS, names, 11, initializers={"m": np.array(3, np.int64)})


def test_keeps_a_loop_with_a_carried_value() -> None:
    assert op_types(convert_and_check(_loop_model(True), 10, FEEDS)) == ["Loop"]


@pytest.mark.parametrize("target", [10, 8, 7])
def test_adds_an_unused_carried_value_to_a_loop_without_one(target: int) -> None:
    result = convert_and_check(_loop_model(False), target, FEEDS)
    (loop,) = (each for each in result.graph.node if each.op_type == "Loop")
    assert len(loop.input) == 3
    assert loop.output[1] == "y"


@pytest.mark.parametrize(
    ("opset", "target", "axis", "is_reversed", "item"),
    [
        *((9, target, 0, 0, (3, 4)) for target in (8, 7)),
        *((9, target, 1, 0, (2, 4)) for target in (8, 7)),
        *((9, target, 2, 1, (2, 3)) for target in (8, 7)),
        *((9, target, 0, 1, (3, 4)) for target in (8, 7)),
        (8, 7, 0, 0, (4,)),
    ],
)
def test_scans_all_strings_of_slices(
    opset: int, target: int, axis: int, is_reversed: int, item: tuple[int, ...]
) -> None:
    """For each index, onnxruntime's Gather copies only the first of the strings that follow the axis."""
    values = [_value(name, item, TensorProto.STRING) for name in ("a", "b")]
    body = helper.make_graph([helper.make_node("Identity", ["a"], ["b"])], "body", values[:1], values[1:])
    attributes = {"scan_input_axes": [axis]} if opset == 9 else {}  # version 8 scans dimension 1
    if is_reversed:
        attributes |= {"scan_input_directions": [1], "scan_output_directions": [1]}
    inputs = ["x"] if opset == 9 else ["", "x"]
    node = helper.make_node("Scan", inputs, ["y"], num_scan_inputs=1, body=body, **attributes)
    data = np.arange(24).astype(str).astype(object).reshape(2, 3, 4)
    model = build([node], {"x": data}, {"y": TensorProto.STRING}, opset)
    convert_and_check(model, target, {"x": data})
