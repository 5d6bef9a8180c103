"""The experimental operators that ONNX removed: known where they belong, and expressed by what stayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, helper
from support.running import Array, assert_equal, build, op_types, opset_of, run

from opshift import ConversionRefused, convert_version, default_registry
from opshift.registry.errors import OperatorRemoved

TARGETS = (10, 17, 21, 26)
RANDOM = np.random.default_rng(7)
IMAGES = RANDOM.standard_normal((2, 3, 5, 6)).astype(np.float32)
LIST = np.array([-2.5, -0.0, 0.0, 0.75, 1.0, 40.0], np.float32)


class Row(NamedTuple):
    """A node, what it is fed, and what it becomes at 10; `result` where no runtime runs it."""

    op: str
    opset: int
    feeds: Sequence[Array]
    attributes: Mapping[str, Any]
    becomes: Sequence[str]
    result: Array | None = None


def integers(*values: int, kind: type[np.generic] = np.int64) -> Array:
    return np.array(values, kind)


def _node(op: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> onnx.NodeProto:
    node = helper.make_node(op, inputs, ["y"], name="old")
    for name, value in attributes.items():
        kind = AttributeProto.INTS if isinstance(value, list) and not value else None
        node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
    return node


def _model(row: Row, *, shapes: bool = True) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds = {f"x{position}": array for position, array in enumerate(row.feeds)}
    source = row.result if row.result is not None else row.feeds[0]
    outputs = {"y": helper.np_dtype_to_tensor_dtype(source.dtype)}
    node = _node(row.op, list(feeds), row.attributes)
    return build([node], feeds, outputs, row.opset, shapes=shapes), feeds


CHANGED = {
    "Affine multiplies, then adds": Row("Affine", 7, [LIST], {"alpha": 1.7, "beta": -0.3}, ["Mul", "Add"]),
    "Affine's factor is 1 if left out": Row("Affine", 1, [IMAGES], {"beta": 0.1}, ["Mul", "Add"]),
    "Affine adds 0 if told nothing": Row("Affine", 9, [LIST], {}, ["Mul", "Add"]),
    "Affine in half precision": Row(
        "Affine",
        7,
        [LIST.astype(np.float16)],
        {"alpha": 0.5, "beta": 2.0},
        ["Mul", "Add"],
        LIST.astype(np.float16) * np.float16(0.5) + np.float16(2),
    ),
    "Affine in double precision keeps its 32-bit numbers": Row(
        "Affine",
        7,
        [LIST.astype(np.float64)],
        {"alpha": 0.1},
        ["Mul", "Add"],
        LIST.astype(np.float64) * np.float64(np.float32(0.1)),
    ),
    "Scale multiplies": Row("Scale", 6, [IMAGES], {"scale": -0.25}, ["Mul"]),
    "Scale's factor is 1 if left out": Row("Scale", 9, [LIST], {}, ["Mul"]),
    "ImageScaler does not scale the bias": Row(
        "ImageScaler", 7, [IMAGES], {"scale": 3.0, "bias": [1.0, -2.0, 0.5]}, ["Mul", "Add"]
    ),
    "ImageScaler's factor is 1 if left out": Row(
        "ImageScaler", 1, [IMAGES], {"bias": [1.0, -2.0, 0.5]}, ["Mul", "Add"]
    ),
    "ParametricSoftplus scales input and result": Row(
        "ParametricSoftplus", 7, [LIST], {"alpha": 2.0, "beta": 0.7}, ["Mul", "Softplus", "Mul"]
    ),
    "ParametricSoftplus beyond the range of exp": Row(
        "ParametricSoftplus", 9, [LIST], {"alpha": 0.5, "beta": 9.0}, ["Mul", "Softplus", "Mul"]
    ),
    "ScaledTanh scales input and result": Row(
        "ScaledTanh", 7, [IMAGES], {"alpha": 1.7159, "beta": 0.6667}, ["Mul", "Tanh", "Mul"]
    ),
    "Crop takes off left, top, right, bottom": Row("Crop", 7, [IMAGES], {"border": [1, 2, 3, 0]}, ["Slice"]),
    "Crop of nothing": Row("Crop", 1, [IMAGES], {"border": [0, 0, 0, 0]}, ["Slice"]),
    "Crop to a height and width from left and top": Row(
        "Crop", 9, [IMAGES], {"border": [2, 1, 0, 0], "scale": [3, 2]}, ["Slice"]
    ),
    "Crop to a size starts at the corner if no border is stated": Row(
        "Crop", 9, [IMAGES], {"scale": [3, 2]}, ["Slice"], IMAGES[:, :, :3, :2]
    ),
    "DynamicSlice of the axes it names": Row(
        "DynamicSlice", 9, [IMAGES, integers(1, -4), integers(2**31 - 1, -1), integers(1, 3)], {}, ["Slice"]
    ),
    "DynamicSlice of all axes": Row(
        "DynamicSlice", 1, [IMAGES, integers(0, 1, 2, 3), integers(9, 3, 4, 5)], {}, ["Slice"]
    ),
    "DynamicSlice with 32-bit bounds and nothing left": Row(
        "DynamicSlice",
        9,
        [IMAGES, *(integers(each, kind=np.int32) for each in (3, 2, 2))],
        {},
        ["Slice"],
    ),
    "statistics of every channel": Row(
        "MeanVarianceNormalization",
        1,
        [IMAGES],
        {},
        ["ReduceMean", "Sub", "Mul", "ReduceMean", "Sqrt", "Div"],
    ),
    "statistics across channels": Row(
        "MeanVarianceNormalization",
        8,
        [IMAGES],
        {"across_channels": 1},
        ["ReduceMean", "Sub", "Mul", "ReduceMean", "Sqrt", "Div"],
    ),
    "statistics of numbers whose deviation is below 1e-9": Row(
        "MeanVarianceNormalization",
        8,
        [IMAGES * np.float32(1e-12)],
        {},
        ["ReduceMean", "Sub", "Mul", "ReduceMean", "Sqrt", "Div"],
    ),
    "a constant channel divides 0 by 0": Row(
        "MeanVarianceNormalization",
        8,
        [np.full((1, 2, 2, 2), 3, np.float32)],
        {"normalize_variance": 1},
        ["ReduceMean", "Sub", "Mul", "ReduceMean", "Sqrt", "Div"],
    ),
    "the mean of every channel": Row(
        "MeanVarianceNormalization", 6, [IMAGES], {"normalize_variance": 0}, ["ReduceMean", "Sub"]
    ),
    "the mean across channels": Row(
        "MeanVarianceNormalization",
        8,
        [IMAGES],
        {"normalize_variance": 0, "across_channels": 1},
        ["ReduceMean", "Sub"],
    ),
    "ConstantFill of a stated shape": Row(
        "ConstantFill",
        8,
        [],
        {"shape": [2, 3], "value": 1.5},
        ["ConstantOfShape"],
        np.full((2, 3), 1.5, np.float32),
    ),
    "ConstantFill of a scalar": Row(
        "ConstantFill", 1, [], {"shape": []}, ["ConstantOfShape"], np.array(0, np.float32)
    ),
    "ConstantFill of 32-bit integers": Row(
        "ConstantFill",
        8,
        [],
        {"shape": [2], "value": -7.0, "dtype": 6},
        ["ConstantOfShape"],
        np.full(2, -7, np.int32),
    ),
    "ConstantFill of 64-bit integers": Row(
        "ConstantFill",
        8,
        [],
        {"shape": [0, 2], "value": 1e12, "dtype": 7},
        ["ConstantOfShape"],
        np.full((0, 2), 0, np.int64),
    ),
    "ConstantFill of truth values": Row(
        "ConstantFill",
        8,
        [],
        {"shape": [2], "value": 1.0, "dtype": 9},
        ["ConstantOfShape"],
        np.full(2, True),
    ),
    "ConstantFill as large as its input": Row(
        "ConstantFill",
        8,
        [IMAGES],
        {"value": 2.0},
        ["Shape", "ConstantOfShape"],
        np.full(IMAGES.shape, 2, np.float32),
    ),
    "ConstantFill with further dimensions": Row(
        "ConstantFill",
        8,
        [LIST],
        {"value": 2.0, "extra_shape": [1, 4], "input_as_shape": 0},
        ["Shape", "Concat", "ConstantOfShape"],
        np.full((6, 1, 4), 2, np.float32),
    ),
    "ConstantFill of the shape its input lists": Row(
        "ConstantFill",
        8,
        [integers(2, 3)],
        {"value": 2.0, "input_as_shape": 1},
        ["Cast", "ConstantOfShape"],
        np.full((2, 3), 2, np.float32),
    ),
    "ConstantFill of a listed shape and further dimensions": Row(
        "ConstantFill",
        8,
        [integers(2, 3, kind=np.int32)],
        {"dtype": 7, "input_as_shape": 1, "extra_shape": [4]},
        ["Cast", "Concat", "ConstantOfShape"],
        np.zeros((2, 3, 4), np.int64),
    ),
    "GivenTensorFill of a stated shape": Row(
        "GivenTensorFill",
        9,
        [],
        {"values": [1.0, 2.0, 3.0, 4.0], "shape": [2, 2]},
        ["Constant"],
        np.array([[1, 2], [3, 4]], np.float32),
    ),
    "GivenTensorFill of nothing": Row(
        "GivenTensorFill", 9, [], {"shape": [3, 0]}, ["Constant"], np.zeros((3, 0), np.float32)
    ),
    "GivenTensorFill in the precision of its output": Row(
        "GivenTensorFill",
        9,
        [],
        {"values": [0.1], "shape": []},
        ["Constant"],
        np.array(np.float32(0.1), np.float64),
    ),
    "GivenTensorFill as large as its input": Row(
        "GivenTensorFill",
        9,
        [np.zeros((2, 1), np.float16)],
        {"values": [1.0, 2.0, 3.0, 4.0], "extra_shape": [2]},
        ["Shape", "Concat", "Reshape"],
        np.array([[[1, 2]], [[3, 4]]], np.float16),
    ),
    "GivenTensorFill of the shape its input lists": Row(
        "GivenTensorFill",
        9,
        [integers(3, 1)],
        {"values": [1.0, 2.0, 3.0], "input_as_shape": 1},
        ["Cast", "Reshape"],
        np.array([[1], [2], [3]], np.float32),
    ),
}

UNCHANGED = {
    "ThresholdedRelu compares with alpha": Row("ThresholdedRelu", 7, [LIST], {"alpha": 0.75}, []),
    "ThresholdedRelu compares with 1 if told nothing": Row("ThresholdedRelu", 1, [LIST], {}, []),
}


@pytest.mark.parametrize("row", CHANGED.values(), ids=CHANGED)
def test_numbers_stay_the_same(row: Row) -> None:
    model, feeds = _model(row)
    expected = [row.result] if row.result is not None else run(model, feeds)
    for target in TARGETS:
        converted = convert_version(model, target)
        assert opset_of(converted) == target
        assert_equal(run(converted, feeds), expected)


@pytest.mark.parametrize("row", CHANGED.values(), ids=CHANGED)
def test_the_operators_that_take_its_place(row: Row) -> None:
    converted = convert_version(_model(row)[0], 10)
    assert op_types(converted) == row.becomes
    assert [node.name for node in converted.graph.node if "y" in node.output] == ["old"]


@pytest.mark.parametrize("row", CHANGED.values(), ids=CHANGED)
def test_no_shape_needs_to_be_known(row: Row) -> None:
    model, feeds = _model(row, shapes=False)
    expected = [row.result] if row.result is not None else run(model, feeds)
    assert_equal(run(convert_version(model, 13), feeds), expected)


@pytest.mark.parametrize("row", CHANGED.values(), ids=CHANGED)
def test_nothing_changes_below_the_opset_that_removes_it(row: Row) -> None:
    model = _model(row)[0]
    assert convert_version(model, 8).graph == model.graph


@pytest.mark.parametrize("row", UNCHANGED.values(), ids=UNCHANGED)
def test_a_definition_that_stayed_the_same_keeps_its_nodes(row: Row) -> None:
    model, feeds = _model(row)
    expected = run(model, feeds)
    for target in TARGETS:
        converted = convert_version(model, target)
        assert converted.graph == model.graph
        assert_equal(run(converted, feeds), expected)


class Refused(NamedTuple):
    """A node, the shapes it is fed, and why it has no other form."""

    op: str
    shapes: Sequence[Sequence[int]]
    attributes: Mapping[str, Any]
    reason: str
    remedy: str = ""


REFUSED = {
    "ATen has no meaning in ONNX": Refused(
        "ATen", [(2,)], {"operator": "cumsum"}, "a function of PyTorch", "export the model from PyTorch again"
    ),
    "GRUUnit has no formula": Refused(
        "GRUUnit",
        [(1, 2, 3), (1, 2, 9), (2,), (1,)],
        {},
        "gives no formula",
        "use GRU for the whole sequence",
    ),
    "ImageScaler without a bias": Refused(
        "ImageScaler",
        [(1, 3, 2, 2)],
        {},
        "bias is missing, and its definition has no default",
        "set bias",
    ),
    "ImageScaler with a bias for fewer channels": Refused(
        "ImageScaler", [(1, 3, 2, 2)], {"bias": [1.0]}, "bias has 1 elements for 3 channels"
    ),
    "ImageScaler of no image": Refused(
        "ImageScaler", [(3, 2, 2)], {"bias": [1.0, 2.0]}, "'x0' has 3 dimensions"
    ),
    "ParametricSoftplus without alpha": Refused(
        "ParametricSoftplus", [(2,)], {"beta": 1.0}, "alpha is missing", "set alpha"
    ),
    "ScaledTanh without beta": Refused("ScaledTanh", [(2,)], {"alpha": 1.0}, "beta is missing", "set beta"),
    "Crop without border and scale": Refused(
        "Crop",
        [(1, 3, 2, 2)],
        {},
        "border and scale are both missing",
        "set border to left, top, right, bottom",
    ),
    "Crop with two borders": Refused(
        "Crop", [(1, 3, 2, 2)], {"border": [1, 1]}, "border is [1, 1], expected 4 numbers of at least 0"
    ),
    "Crop with a negative border": Refused(
        "Crop", [(1, 3, 2, 2)], {"border": [0, 0, -1, 0]}, "border is [0, 0, -1, 0]"
    ),
    "Crop to a size of one number": Refused(
        "Crop", [(1, 3, 2, 2)], {"border": [0] * 4, "scale": [1]}, "scale is [1], expected 2 numbers"
    ),
    "Crop of no image": Refused("Crop", [(3, 2, 2)], {"border": [0] * 4}, "'x0' has 3 dimensions"),
    "MeanVarianceNormalization of no image": Refused(
        "MeanVarianceNormalization", [(3, 2, 2)], {}, "'x0' has 3 dimensions"
    ),
    "MeanVarianceNormalization that states what came later": Refused(
        "MeanVarianceNormalization", [(1, 3, 2, 2)], {"axes": [1]}, "axes is set", "import opset 9"
    ),
    "ConstantFill of no shape": Refused(
        "ConstantFill", [], {"value": 1.0}, "neither an input nor the attribute shape", "set shape"
    ),
    "ConstantFill of two shapes": Refused(
        "ConstantFill", [(2,)], {"shape": [2]}, "both the input and the attribute shape", "remove one"
    ),
    "ConstantFill with extra_shape and no input": Refused(
        "ConstantFill", [], {"shape": [2], "extra_shape": [2]}, "require an input", "to the whole shape"
    ),
    "ConstantFill with input_as_shape and no input": Refused(
        "ConstantFill", [], {"shape": [2], "input_as_shape": 1}, "require an input", "to the whole shape"
    ),
    "ConstantFill of a size below 0": Refused("ConstantFill", [], {"shape": [-1]}, "a negative size"),
    "ConstantFill with a further size below 0": Refused(
        "ConstantFill", [(2,)], {"extra_shape": [-1]}, "a negative size"
    ),
    "ConstantFill of a type that it does not make": Refused(
        "ConstantFill", [], {"shape": [2], "dtype": 10}, "dtype is 10", "use 1 (float)"
    ),
    "ConstantFill of integers with a fraction": Refused(
        "ConstantFill",
        [],
        {"shape": [2], "dtype": 6, "value": 2.5},
        "value is 2.5, and its conversion to int32",
    ),
    "ConstantFill of integers too great": Refused(
        "ConstantFill", [], {"shape": [2], "dtype": 6, "value": 2.0**31}, "conversion to int32"
    ),
    "ConstantFill of integers with no number": Refused(
        "ConstantFill", [], {"shape": [2], "dtype": 7, "value": float("nan")}, "value is nan"
    ),
    "ConstantFill of truth values with 2": Refused(
        "ConstantFill",
        [],
        {"shape": [2], "dtype": 9, "value": 2.0},
        "value is 2.0, and its conversion to bool",
    ),
    "GivenTensorFill of another count": Refused(
        "GivenTensorFill", [], {"shape": [2, 2], "values": [1.0]}, "values has 1 numbers, shape [2, 2]"
    ),
    "GivenTensorFill of two shapes": Refused(
        "GivenTensorFill", [(1,)], {"shape": [1], "values": [1.0]}, "both the input and the attribute shape"
    ),
    "GivenTensorFill of nothing in a shape from an input": Refused(
        "GivenTensorFill", [(0,)], {}, "values is missing", "remove the input"
    ),
}


@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED)
def test_what_has_no_meaning_is_refused(row: Refused) -> None:
    feeds = [np.zeros(shape, np.float32) for shape in row.shapes]
    model, _ = _model(Row(row.op, 8, feeds, row.attributes, [], np.zeros((), np.float32)))
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, 13)
    (refusal,) = caught.value.refusals
    assert row.reason in refusal.reason
    assert row.remedy in refusal.remedy


NUMBERS: Mapping[str, Mapping[str, Any]] = {
    "Affine": {},
    "ImageScaler": {"bias": [1.0]},
    "ParametricSoftplus": {"alpha": 1.0, "beta": 1.0},
    "Scale": {},
    "ScaledTanh": {"alpha": 1.0, "beta": 1.0},
}


@pytest.mark.parametrize("op", NUMBERS)
def test_constants_need_the_element_type_of_the_data(op: str) -> None:
    unknown = helper.make_node("Anything", ["x0"], ["x1"], domain="com.acme")
    model = build([unknown, _node(op, ["x1"], NUMBERS[op])], {"x0": IMAGES}, ["y"], {"": 7, "com.acme": 1})
    with pytest.raises(ConversionRefused, match="the element type of 'x1' is unknown"):
        convert_version(model, 13)


TYPES = {
    "that of a floating-point input": (np.zeros(2, np.float16), {}, np.float16),
    "float for a list of sizes": (integers(2), {"input_as_shape": 1}, np.float32),
    "float without an input": (None, {"shape": [2]}, np.float32),
}


@pytest.mark.parametrize(("listed", "attributes", "kind"), TYPES.values(), ids=TYPES)
def test_the_type_of_a_fill_that_the_model_does_not_state(
    listed: Array | None, attributes: Mapping[str, Any], kind: type[np.generic]
) -> None:
    feeds = {} if listed is None else {"x0": listed}
    fill = _node("GivenTensorFill", list(feeds), {"values": [1.0, 2.0], **attributes})
    last = helper.make_node("Abs", ["y"], ["z"])
    model = build([fill, last], feeds, {"z": helper.np_dtype_to_tensor_dtype(np.dtype(kind))}, 9)
    assert_equal(run(convert_version(model, 13), feeds), [np.array([1, 2], kind)])


def test_the_type_of_a_fill_whose_input_is_unknown_is_not_guessed() -> None:
    unknown = helper.make_node("Anything", ["x0"], ["x1"], domain="com.acme")
    fill = _node("GivenTensorFill", ["x1"], {"values": [1.0]})
    last = helper.make_node("Abs", ["y"], ["z"])
    model = build([unknown, fill, last], {"x0": IMAGES}, ["z"], {"": 9, "com.acme": 1})
    with pytest.raises(ConversionRefused, match="the element type of 'y' is unknown"):
        convert_version(model, 13)


# Resolving

REMOVED = {
    "Affine": (10, "Mul by `alpha`, then Add of `beta`"),
    "ATen": (10, "export the model from PyTorch again"),
    "ConstantFill": (9, "ConstantOfShape"),
    "Crop": (10, "Slice along axes 2 and 3"),
    "DynamicSlice": (10, "Slice takes the same inputs"),
    "GivenTensorFill": (10, "Constant holds `values`"),
    "GRUUnit": (10, "Use GRU"),
    "ImageScaler": (10, "Mul by `scale`, then Add of `bias`"),
    "ParametricSoftplus": (10, "Softplus"),
    "Scale": (10, "Mul by `scale`"),
    "ScaledTanh": (10, "Tanh"),
}


@pytest.mark.parametrize("op", REMOVED)
def test_it_is_known_until_it_leaves_the_set(op: str) -> None:
    removed_in, remedy = REMOVED[op]
    for opset in (1, 7, removed_in - 1):
        assert default_registry().get_schema(op, opset).status == "EXPERIMENTAL"
    for opset in (removed_in, 17):
        with pytest.raises(
            OperatorRemoved, match=rf"{op} was removed from ai\.onnx in {removed_in}"
        ) as caught:
            default_registry().get_schema(op, opset)
        assert remedy in caught.value.remedy


@pytest.mark.parametrize(("op", "opset"), [("MeanVarianceNormalization", 9), ("ThresholdedRelu", 10)])
def test_it_comes_back_stable(op: str, opset: int) -> None:
    before, after = (default_registry().get_schema(op, each) for each in (opset - 1, opset))
    assert (before.since_version, before.status) == (1, "EXPERIMENTAL")
    assert (after.since_version, after.status) == (opset, "STABLE")


def test_a_node_beyond_its_last_opset_is_refused_with_what_replaces_it() -> None:
    model, _ = _model(CHANGED["Scale multiplies"]._replace(opset=11))
    with pytest.raises(ConversionRefused, match=r"Scale was removed from ai\.onnx in 10") as caught:
        convert_version(model, 13)
    assert "Mul by `scale`" in caught.value.refusals[0].remedy
