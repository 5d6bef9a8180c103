"""Declarative rewrites of upgrade steps: the effect of each verb on a node, and refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from onnx import helper, numpy_helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types, run
from support.forms import in_form

from opshift import convert_version, default_registry

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((1, 2, 4, 4)).astype(np.float32)
GRID = RANDOM.uniform(-1, 1, (1, 3, 2, 2)).astype(np.float32)
VECTOR = np.array([-2.0, 0.5, 3.0], np.float32)
ROI_FEEDS = {"x": IMAGE, "rois": np.array([[0, 0, 2, 3]], np.float32), "b": np.array([0])}
ROI_ATTRIBUTES = {"output_height": 2, "output_width": 2}


class RewriteCase(NamedTuple):
    """Node with one input per entry of `feeds`, and its attributes and inputs after the rewrite."""

    verb: str
    op: str
    source: int
    target: int
    feeds: Mapping[str, Array]
    attributes: Mapping[str, Any]
    expected_attributes: Mapping[str, Any] = {}
    expected: Array | None = None
    inputs: Sequence[str] | None = None


CASES = {
    "an attribute without effect is ignored": RewriteCase(
        "ignore_attribute", "Relu", 1, 6, {"x": VECTOR}, {"consumed_inputs": [0]}, {}, np.maximum(VECTOR, 0)
    ),
    "a missing attribute without effect is accepted": RewriteCase(
        "ignore_attribute", "Relu", 1, 6, {"x": VECTOR}, {}, {}, np.maximum(VECTOR, 0)
    ),
    "a default that changes is written out": RewriteCase(
        "add_attribute",
        "RoiAlign",
        10,
        16,
        ROI_FEEDS,
        ROI_ATTRIBUTES,
        {**ROI_ATTRIBUTES, "coordinate_transformation_mode": b"output_half_pixel"},
    ),
    "a default that becomes required is written out": RewriteCase(
        "add_attribute",
        "Concat",
        1,
        4,
        {"x": IMAGE, "z": IMAGE},
        {},
        {"axis": 1},
        np.concatenate([IMAGE, IMAGE], 1),
    ),
    "an explicit value is not overwritten": RewriteCase(
        "add_attribute",
        "Concat",
        1,
        4,
        {"x": IMAGE, "z": IMAGE},
        {"axis": 2},
        {"axis": 2},
        np.concatenate([IMAGE, IMAGE], 2),
    ),
    "an attribute is renamed": RewriteCase(
        "rename_attribute",
        "Pad",
        1,
        2,
        {"x": VECTOR},
        {"paddings": [1, 2], "value": 4.0},
        {"pads": (1, 2), "value": 4.0},
        np.pad(VECTOR, (1, 2), constant_values=4),
    ),
    "a list becomes an input": RewriteCase(
        "attribute_to_input", "Squeeze", 11, 13, {"x": IMAGE}, {"axes": [0]}, inputs=["x", "const"]
    ),
    "an omitted list stays omitted": RewriteCase(
        "attribute_to_input", "Squeeze", 11, 13, {"x": IMAGE}, {}, inputs=["x"]
    ),
    "a default of both versions is omitted": RewriteCase(
        "attribute_to_input",
        "Pad",
        2,
        11,
        {"x": VECTOR},
        {"pads": [0, 1], "value": 0.0},
        expected=np.pad(VECTOR, (0, 1)),
        inputs=["x", "const"],
    ),
    "a negative zero differs from a default of zero": RewriteCase(
        "attribute_to_input",
        "Pad",
        2,
        11,
        {"x": VECTOR},
        {"pads": [0, 1], "value": -0.0},
        expected=np.pad(VECTOR, (0, 1)),
        inputs=["x", "const", "const_1"],
    ),
    "two lists become inputs and a third is omitted": RewriteCase(
        "attribute_to_input",
        "Slice",
        1,
        10,
        {"x": IMAGE},
        {"starts": [0, 1], "ends": [9, 2]},
        expected=IMAGE[:, 1:2],
        inputs=["x", "const", "const_1"],
    ),
    "bilinear becomes linear": RewriteCase(
        "rename_value",
        "GridSample",
        16,
        20,
        {"x": IMAGE, "g": GRID},
        {"mode": "bilinear"},
        {"mode": b"linear"},
    ),
    "bicubic becomes cubic": RewriteCase(
        "rename_value",
        "GridSample",
        16,
        20,
        {"x": IMAGE, "g": GRID},
        {"mode": "bicubic", "align_corners": 1},
        {"mode": b"cubic", "align_corners": 1},
    ),
    "nearest is unchanged": RewriteCase(
        "rename_value",
        "GridSample",
        16,
        20,
        {"x": IMAGE, "g": GRID},
        {"mode": "nearest"},
        {"mode": b"nearest"},
    ),
    "a renamed default stays implicit": RewriteCase(
        "rename_value", "GridSample", 16, 20, {"x": IMAGE, "g": GRID}, {}, {}
    ),
    "the operator is renamed": RewriteCase(
        "rename_op",
        "Scatter",
        9,
        11,
        {"data": IMAGE[0, 0], "i": np.array([[2, 0, 1, 3]]), "u": IMAGE[0, 1, :1]},
        {"axis": 0},
        {"axis": 0},
    ),
}


def _verbs(case: RewriteCase) -> set[str]:
    """Return the verbs that the definitions declare for the step of a case."""
    version = default_registry().get_schema(case.op, case.target)
    assert version.step is not None
    assert isinstance(version.step.up, tuple)
    return {verb.name for verb in version.step.up}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_preserves_results(case: RewriteCase) -> None:
    assert case.verb in _verbs(case)
    node = helper.make_node(case.op, list(case.feeds), ["y"], name="node", **case.attributes)
    expected = None if case.expected is None else [case.expected]
    result = convert_and_check(
        build([node], case.feeds, ["y"], case.source), case.target, case.feeds, expected
    )
    (node,) = result.graph.node
    values = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    attributes = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    assert attributes == case.expected_attributes
    assert list(node.input) == (case.inputs or list(case.feeds))


def test_every_verb_of_an_upgrade_has_cases() -> None:
    steps = (version.step for version in default_registry().get_all_schemas_with_history() if version.step)
    used = {verb.name for step in steps if isinstance(step.up, tuple) for verb in step.up}
    assert {case.verb for case in CASES.values()} == used


@pytest.mark.parametrize("form", ["fed", "function"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_keeps_the_sign_of_zero(dtype: type[np.generic], form: str) -> None:
    """The nodes differ only in an attribute value, so that they may share a rewrite."""
    values = {"zero": 0.0, "minus_zero": -0.0, "three": 3.0, "minus_zero_again": -0.0}
    nodes = [helper.make_node("Pad", ["x"], [name], pads=[0, 1], value=each) for name, each in values.items()]
    data = np.array([1, -0.0], dtype)
    outputs = dict.fromkeys(values, helper.np_dtype_to_tensor_dtype(data.dtype))
    model, feeds = in_form(form, nodes, {"x": data}, outputs, 10)
    padded = run(convert_version(model, 13), feeds)
    assert np.signbit([each[-1] for each in padded]).tolist() == [False, True, False, True]
    assert np.signbit(padded).tolist() == np.signbit(run(model, feeds)).tolist()


def test_refuses_a_missing_required_attribute() -> None:
    model = build([helper.make_node("Reshape", ["x"], ["y"])], {"x": VECTOR}, ["y"], 1)
    assert refusal_of(model, 5).reason == "the node has no attribute shape, which ai.onnx.Reshape:5 requires"


def test_renamed_operator_takes_the_steps_of_its_new_name() -> None:
    """Upsample becomes Resize and then takes the steps of Resize."""
    node = helper.make_node("Upsample", ["x"], ["y"], name="node", scales=[1.0, 1.0, 2.0, 2.0])
    expected = IMAGE.repeat(2, 2).repeat(2, 3)
    names = {8: "Upsample", 9: "Upsample", 10: "Resize", 13: "Resize"}
    for target, name in names.items():
        result = convert_and_check(build([node], {"x": IMAGE}, ["y"], 7), target, {"x": IMAGE}, [expected])
        assert op_types(result) == [name]


class ConstantCase(NamedTuple):
    """Attributes that become constant inputs, and the expected constants."""

    op: str
    source: int
    target: int
    dtype: type[np.generic]
    attributes: Mapping[str, Any]
    constants: Sequence[Array]


PADS = {"pads": [1, 0], "value": 0.1}
CONSTANT_CASES = {
    "a list of axes is int64": ConstantCase(
        "Unsqueeze", 11, 13, np.int32, {"axes": [0]}, [np.array([0], np.int64)]
    ),
    "sizes are int64": ConstantCase("Reshape", 1, 5, np.float16, {"shape": [3, 1]}, [np.array([3, 1])]),
    "bounds are int64 rather than int32": ConstantCase(
        "Slice",
        1,
        10,
        np.int8,
        {"starts": [1], "ends": [2], "axes": [0]},
        [np.array([each], np.int64) for each in (1, 2, 0)],
    ),
    "scales are float for data of any type": ConstantCase(
        "Upsample", 7, 9, np.uint8, {"scales": [2.0]}, [np.array([2], np.float32)]
    ),
    "a count has shape 1": ConstantCase("TopK", 1, 10, np.float32, {"k": 2}, [np.array([2], np.int64)]),
    "a value has the type of float data": ConstantCase(
        "Pad", 2, 11, np.float32, PADS, [np.array([1, 0]), np.array(0.1, np.float32)]
    ),
    "a value has the type of float16 data": ConstantCase(
        "Pad", 2, 11, np.float16, PADS, [np.array([1, 0]), np.array(np.float32(0.1), np.float16)]
    ),
    "a value has the type of double data": ConstantCase(
        "Pad", 2, 11, np.float64, PADS, [np.array([1, 0]), np.array(np.float32(0.1), np.float64)]
    ),
    "a default value is omitted": ConstantCase(
        "Pad", 2, 11, np.float64, {"pads": [1, 0], "value": 0.0}, [np.array([1, 0])]
    ),
    "a ratio is float for data of any type": ConstantCase(
        "Dropout", 10, 12, np.float64, {"ratio": 0.25}, [np.array(0.25, np.float32)]
    ),
}


@pytest.mark.parametrize("case", CONSTANT_CASES.values(), ids=CONSTANT_CASES)
def test_constants_have_the_type_and_rank_of_the_input(case: ConstantCase) -> None:
    data = np.array([1, 2, 3], case.dtype)
    element_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    outputs = ["y", "i"] if case.op == "TopK" else ["y"]
    node = helper.make_node(case.op, ["x"], outputs, **case.attributes)
    result = convert_version(build([node], {"x": data}, {"y": element_type}, case.source), case.target)
    values = {each.name: numpy_helper.to_array(each) for each in result.graph.initializer}
    found = [values[name] for name in result.graph.node[0].input[1:]]
    for actual, expected in zip(found, case.constants, strict=True):
        np.testing.assert_array_equal(actual, expected, strict=True)


def test_refuses_a_value_for_data_of_unknown_type() -> None:
    nodes = [
        helper.make_node("Anything", ["x"], ["h"], domain="com.acme"),
        helper.make_node("Pad", ["h"], ["p"], pads=[1, 1], value=1.0),
        helper.make_node("Abs", ["p"], ["y"]),
    ]
    model = build(nodes, {"x": VECTOR}, ["y"], {"": 10, "com.acme": 1})
    assert refusal_of(model, 11).reason == "the element type of 'h' is unknown"
