"""The declared rewrites that steps up use: what each verb does to a node, and when it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.running import Array, build, op_types

from opshift import convert_version, default_registry
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((1, 2, 4, 4)).astype(np.float32)
GRID = RANDOM.uniform(-1, 1, (1, 3, 2, 2)).astype(np.float32)
LIST = np.array([-2.0, 0.5, 3.0], np.float32)
BOXES = {"x": IMAGE, "rois": np.array([[0, 0, 2, 3]], np.float32), "b": np.array([0])}
BOX = {"output_height": 2, "output_width": 2}


class Row(NamedTuple):
    """A node that is fed with everything in `feeds`, and what it states afterwards."""

    verb: str
    op: str
    source: int
    target: int
    feeds: Mapping[str, Array]
    attributes: Mapping[str, Any]
    after: Mapping[str, Any] = {}
    expected: Array | None = None
    inputs: Sequence[str] | None = None


CHANGED = {
    "an attribute without effect is ignored": Row(
        "ignore_attribute", "Relu", 1, 6, {"x": LIST}, {"consumed_inputs": [0]}, {}, np.maximum(LIST, 0)
    ),
    "an attribute without effect need not be there": Row(
        "ignore_attribute", "Relu", 1, 6, {"x": LIST}, {}, {}, np.maximum(LIST, 0)
    ),
    "a default that changes is written out": Row(
        "add_attribute",
        "RoiAlign",
        10,
        16,
        BOXES,
        BOX,
        {**BOX, "coordinate_transformation_mode": b"output_half_pixel"},
    ),
    "a default that becomes required is written out": Row(
        "add_attribute",
        "Concat",
        1,
        4,
        {"x": IMAGE, "z": IMAGE},
        {},
        {"axis": 1},
        np.concatenate([IMAGE, IMAGE], 1),
    ),
    "a stated value is not overwritten": Row(
        "add_attribute",
        "Concat",
        1,
        4,
        {"x": IMAGE, "z": IMAGE},
        {"axis": 2},
        {"axis": 2},
        np.concatenate([IMAGE, IMAGE], 2),
    ),
    "an attribute is renamed": Row(
        "rename_attribute",
        "Pad",
        1,
        2,
        {"x": LIST},
        {"paddings": [1, 2], "value": 4.0},
        {"pads": (1, 2), "value": 4.0},
        np.pad(LIST, (1, 2), constant_values=4),
    ),
    "a list becomes an input": Row(
        "attribute_to_input", "Squeeze", 11, 13, {"x": IMAGE}, {"axes": [0]}, inputs=["x", "const"]
    ),
    "a list that is not stated stays out": Row(
        "attribute_to_input", "Squeeze", 11, 13, {"x": IMAGE}, {}, inputs=["x"]
    ),
    "a default that both versions share stays out": Row(
        "attribute_to_input", "Dropout", 10, 12, {"x": LIST}, {"ratio": 0.5}, inputs=["x"]
    ),
    "two lists become inputs, and a third is not stated": Row(
        "attribute_to_input",
        "Slice",
        1,
        10,
        {"x": IMAGE},
        {"starts": [0, 1], "ends": [9, 2]},
        expected=IMAGE[:, 1:2],
        inputs=["x", "const", "const_1"],
    ),
    "bilinear is called linear": Row(
        "rename_value",
        "GridSample",
        16,
        20,
        {"x": IMAGE, "g": GRID},
        {"mode": "bilinear"},
        {"mode": b"linear"},
    ),
    "bicubic is called cubic": Row(
        "rename_value",
        "GridSample",
        16,
        20,
        {"x": IMAGE, "g": GRID},
        {"mode": "bicubic", "align_corners": 1},
        {"mode": b"cubic", "align_corners": 1},
    ),
    "nearest is called so in both": Row(
        "rename_value",
        "GridSample",
        16,
        20,
        {"x": IMAGE, "g": GRID},
        {"mode": "nearest"},
        {"mode": b"nearest"},
    ),
    "a default that is renamed needs no writing": Row(
        "rename_value", "GridSample", 16, 20, {"x": IMAGE, "g": GRID}, {}, {}
    ),
    "the operator is called by its new name": Row(
        "rename_op",
        "Scatter",
        9,
        11,
        {"data": IMAGE[0, 0], "i": np.array([[2, 0, 1, 3]]), "u": IMAGE[0, 1, :1]},
        {"axis": 0},
        {"axis": 0},
    ),
}


def _verbs(row: Row) -> set[str]:
    """The verbs that the definitions declare for the step of a row."""
    version = default_registry().get_schema(row.op, row.target)
    assert version.step is not None
    assert isinstance(version.step.up, tuple)
    return {verb.name for verb in version.step.up}


@pytest.mark.parametrize("row", CHANGED.values(), ids=CHANGED)
def test_numbers_stay_the_same(row: Row, converted: Converted) -> None:
    assert row.verb in _verbs(row)
    node = helper.make_node(row.op, list(row.feeds), ["y"], name="node", **row.attributes)
    expected = None if row.expected is None else [row.expected]
    result = converted(build([node], row.feeds, ["y"], row.source), row.target, row.feeds, expected)
    (node,) = result.graph.node
    stated = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    found = {name: tuple(value) if isinstance(value, list) else value for name, value in stated.items()}
    assert found == row.after
    assert list(node.input) == (row.inputs or list(row.feeds))


def test_every_verb_of_a_step_up_has_its_rows() -> None:
    steps = (version.step for version in default_registry().get_all_schemas_with_history() if version.step)
    used = {verb.name for step in steps if isinstance(step.up, tuple) for verb in step.up}
    assert {row.verb for row in CHANGED.values()} == used


def test_an_input_that_has_to_be_there_is_not_stated(refusal: Refusing) -> None:
    model = build([helper.make_node("Reshape", ["x"], ["y"])], {"x": LIST}, ["y"], 1)
    assert refusal(model, 5).reason == "the node has no attribute shape, which ai.onnx.Reshape:5 requires"


def test_an_operator_that_takes_another_name_goes_its_way(converted: Converted) -> None:
    """Upsample becomes Resize, whose own steps follow."""
    node = helper.make_node("Upsample", ["x"], ["y"], name="node", scales=[1.0, 1.0, 2.0, 2.0])
    expected = IMAGE.repeat(2, 2).repeat(2, 3)
    names = {8: "Upsample", 9: "Upsample", 10: "Resize", 13: "Resize"}
    for target, name in names.items():
        result = converted(build([node], {"x": IMAGE}, ["y"], 7), target, {"x": IMAGE}, [expected])
        assert op_types(result) == [name]


class Constant(NamedTuple):
    """An attribute that becomes a constant, and what the constant has to be."""

    op: str
    source: int
    target: int
    kind: type[np.generic]
    attributes: Mapping[str, Any]
    constants: Sequence[Array]


PADS = {"pads": [1, 0], "value": 0.1}
CONSTANTS = {
    "a list of axes is int64": Constant(
        "Unsqueeze", 11, 13, np.int32, {"axes": [0]}, [np.array([0], np.int64)]
    ),
    "sizes are int64": Constant("Reshape", 1, 5, np.float16, {"shape": [3, 1]}, [np.array([3, 1])]),
    "bounds are int64 where int32 would do": Constant(
        "Slice",
        1,
        10,
        np.int8,
        {"starts": [1], "ends": [2], "axes": [0]},
        [np.array([each], np.int64) for each in (1, 2, 0)],
    ),
    "scales are float whatever the data": Constant(
        "Upsample", 7, 9, np.uint8, {"scales": [2.0]}, [np.array([2], np.float32)]
    ),
    "a count is a list of one": Constant("TopK", 1, 10, np.float32, {"k": 2}, [np.array([2], np.int64)]),
    "a value has the type of float data": Constant(
        "Pad", 2, 11, np.float32, PADS, [np.array([1, 0]), np.array(0.1, np.float32)]
    ),
    "a value has the type of float16 data": Constant(
        "Pad", 2, 11, np.float16, PADS, [np.array([1, 0]), np.array(np.float32(0.1), np.float16)]
    ),
    "a value has the type of double data": Constant(
        "Pad", 2, 11, np.float64, PADS, [np.array([1, 0]), np.array(np.float32(0.1), np.float64)]
    ),
    "a value at its default stays out": Constant(
        "Pad", 2, 11, np.float64, {"pads": [1, 0], "value": 0.0}, [np.array([1, 0])]
    ),
    "a ratio is a float whatever the data": Constant(
        "Dropout", 10, 12, np.float64, {"ratio": 0.25}, [np.array(0.25, np.float32)]
    ),
}


@pytest.mark.parametrize("row", CONSTANTS.values(), ids=CONSTANTS)
def test_constants_have_the_type_and_rank_of_the_input(row: Constant) -> None:
    data = np.array([1, 2, 3], row.kind)
    element = helper.np_dtype_to_tensor_dtype(data.dtype)
    outputs = ["y", "i"] if row.op == "TopK" else ["y"]
    node = helper.make_node(row.op, ["x"], outputs, **row.attributes)
    moved = convert_version(build([node], {"x": data}, {"y": element}, row.source), row.target)
    values = {each.name: numpy_helper.to_array(each) for each in moved.graph.initializer}
    found = [values[name] for name in moved.graph.node[0].input[1:]]
    for one, other in zip(found, row.constants, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def test_a_value_needs_the_type_of_the_data(refusal: Refusing) -> None:
    nodes = [
        helper.make_node("Anything", ["x"], ["h"], domain="com.acme"),
        helper.make_node("Pad", ["h"], ["p"], pads=[1, 1], value=1.0),
        helper.make_node("Abs", ["p"], ["y"]),
    ]
    model = build(nodes, {"x": LIST}, ["y"], {"": 10, "com.acme": 1})
    assert refusal(model, 11).reason == "the element type of 'h' is unknown"
