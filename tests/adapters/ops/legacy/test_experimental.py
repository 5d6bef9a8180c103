"""Experimental operators that ONNX removed: resolved until removal, then replaced by stable operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, helper
from support.execution import Array, assert_equal, build, op_types, opset_of, run

from opshift import ConversionRefused, convert_version, default_registry
from opshift.registry.errors import OperatorRemoved

TARGETS = (10, 17, 21, 26)
RANDOM = np.random.default_rng(7)
IMAGES = RANDOM.standard_normal((2, 3, 5, 6)).astype(np.float32)
VECTOR = np.array([-2.5, -0.0, 0.0, 0.75, 1.0, 40.0], np.float32)


class ConversionCase(NamedTuple):
    """Node, inputs and replacement at opset 10; `result` is the output if no runtime runs the node."""

    op: str
    opset: int
    feeds: Sequence[Array]
    attributes: Mapping[str, Any]
    replacement: Sequence[str]
    result: Array | None = None


def integers(*values: int, dtype: type[np.generic] = np.int64) -> Array:
    return np.array(values, dtype)


def _node(op: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> onnx.NodeProto:
    node = helper.make_node(op, inputs, ["y"], name="old")
    for name, value in attributes.items():
        attribute_type = AttributeProto.INTS if isinstance(value, list) and not value else None
        node.attribute.append(helper.make_attribute(name, value, attr_type=attribute_type))
    return node


def _model(case: ConversionCase, *, shapes: bool = True) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds = {f"x{position}": array for position, array in enumerate(case.feeds)}
    source = case.result if case.result is not None else case.feeds[0]
    outputs = {"y": helper.np_dtype_to_tensor_dtype(source.dtype)}
    node = _node(case.op, list(feeds), case.attributes)
    return build([node], feeds, outputs, case.opset, shapes=shapes), feeds


CHANGED = {
    "Affine with alpha and beta": ConversionCase(
        "Affine", 7, [VECTOR], {"alpha": 1.7, "beta": -0.3}, ["Mul", "Add"]
    ),
    "Affine with default alpha": ConversionCase("Affine", 1, [IMAGES], {"beta": 0.1}, ["Mul", "Add"]),
    "Affine with defaults": ConversionCase("Affine", 9, [VECTOR], {}, ["Mul", "Add"]),
    "Affine in half precision": ConversionCase(
        "Affine",
        7,
        [VECTOR.astype(np.float16)],
        {"alpha": 0.5, "beta": 2.0},
        ["Mul", "Add"],
        VECTOR.astype(np.float16) * np.float16(0.5) + np.float16(2),
    ),
    "Affine in double precision with 32-bit attributes": ConversionCase(
        "Affine",
        7,
        [VECTOR.astype(np.float64)],
        {"alpha": 0.1},
        ["Mul", "Add"],
        VECTOR.astype(np.float64) * np.float64(np.float32(0.1)),
    ),
    "Scale with scale": ConversionCase("Scale", 6, [IMAGES], {"scale": -0.25}, ["Mul"]),
    "Scale with default scale": ConversionCase("Scale", 9, [VECTOR], {}, ["Mul"]),
    "ImageScaler with scale and bias": ConversionCase(
        "ImageScaler", 7, [IMAGES], {"scale": 3.0, "bias": [1.0, -2.0, 0.5]}, ["Mul", "Add"]
    ),
    "ImageScaler with default scale": ConversionCase(
        "ImageScaler", 1, [IMAGES], {"bias": [1.0, -2.0, 0.5]}, ["Mul", "Add"]
    ),
    "ParametricSoftplus with alpha and beta": ConversionCase(
        "ParametricSoftplus", 7, [VECTOR], {"alpha": 2.0, "beta": 0.7}, ["Mul", "Softplus", "Mul"]
    ),
    "ParametricSoftplus beyond the range of exp": ConversionCase(
        "ParametricSoftplus", 9, [VECTOR], {"alpha": 0.5, "beta": 9.0}, ["Mul", "Softplus", "Mul"]
    ),
    "ScaledTanh with alpha and beta": ConversionCase(
        "ScaledTanh", 7, [IMAGES], {"alpha": 1.7159, "beta": 0.6667}, ["Mul", "Tanh", "Mul"]
    ),
    "Crop of four borders": ConversionCase("Crop", 7, [IMAGES], {"border": [1, 2, 3, 0]}, ["Slice"]),
    "Crop of zero borders": ConversionCase("Crop", 1, [IMAGES], {"border": [0, 0, 0, 0]}, ["Slice"]),
    "Crop to a size from left and top": ConversionCase(
        "Crop", 9, [IMAGES], {"border": [2, 1, 0, 0], "scale": [3, 2]}, ["Slice"]
    ),
    "Crop to a size with default border": ConversionCase(
        "Crop", 9, [IMAGES], {"scale": [3, 2]}, ["Slice"], IMAGES[:, :, :3, :2]
    ),
    "DynamicSlice of given axes": ConversionCase(
        "DynamicSlice", 9, [IMAGES, integers(1, -4), integers(2**31 - 1, -1), integers(1, 3)], {}, ["Slice"]
    ),
    "DynamicSlice of all axes": ConversionCase(
        "DynamicSlice", 1, [IMAGES, integers(0, 1, 2, 3), integers(9, 3, 4, 5)], {}, ["Slice"]
    ),
    "DynamicSlice with int32 bounds and empty result": ConversionCase(
        "DynamicSlice",
        9,
        [IMAGES, *(integers(each, dtype=np.int32) for each in (3, 2, 2))],
        {},
        ["Slice"],
    ),
    "MeanVarianceNormalization per channel": ConversionCase(
        "MeanVarianceNormalization",
        1,
        [IMAGES],
        {},
        ["ReduceMean", "Sub", "Mul", "ReduceMean", "Sqrt", "Div"],
    ),
    "MeanVarianceNormalization across channels": ConversionCase(
        "MeanVarianceNormalization",
        8,
        [IMAGES],
        {"across_channels": 1},
        ["ReduceMean", "Sub", "Mul", "ReduceMean", "Sqrt", "Div"],
    ),
    "MeanVarianceNormalization with deviation below 1e-9": ConversionCase(
        "MeanVarianceNormalization",
        8,
        [IMAGES * np.float32(1e-12)],
        {},
        ["ReduceMean", "Sub", "Mul", "ReduceMean", "Sqrt", "Div"],
    ),
    "MeanVarianceNormalization of a constant channel": ConversionCase(
        "MeanVarianceNormalization",
        8,
        [np.full((1, 2, 2, 2), 3, np.float32)],
        {"normalize_variance": 1},
        ["ReduceMean", "Sub", "Mul", "ReduceMean", "Sqrt", "Div"],
    ),
    "mean per channel": ConversionCase(
        "MeanVarianceNormalization", 6, [IMAGES], {"normalize_variance": 0}, ["ReduceMean", "Sub"]
    ),
    "mean across channels": ConversionCase(
        "MeanVarianceNormalization",
        8,
        [IMAGES],
        {"normalize_variance": 0, "across_channels": 1},
        ["ReduceMean", "Sub"],
    ),
    "ConstantFill of a shape attribute": ConversionCase(
        "ConstantFill",
        8,
        [],
        {"shape": [2, 3], "value": 1.5},
        ["ConstantOfShape"],
        np.full((2, 3), 1.5, np.float32),
    ),
    "ConstantFill of a scalar": ConversionCase(
        "ConstantFill", 1, [], {"shape": []}, ["ConstantOfShape"], np.array(0, np.float32)
    ),
    "ConstantFill of 32-bit integers": ConversionCase(
        "ConstantFill",
        8,
        [],
        {"shape": [2], "value": -7.0, "dtype": 6},
        ["ConstantOfShape"],
        np.full(2, -7, np.int32),
    ),
    "ConstantFill of 64-bit integers": ConversionCase(
        "ConstantFill",
        8,
        [],
        {"shape": [0, 2], "value": 1e12, "dtype": 7},
        ["ConstantOfShape"],
        np.full((0, 2), 0, np.int64),
    ),
    "ConstantFill of booleans": ConversionCase(
        "ConstantFill",
        8,
        [],
        {"shape": [2], "value": 1.0, "dtype": 9},
        ["ConstantOfShape"],
        np.full(2, True),
    ),
    "ConstantFill of the input's shape": ConversionCase(
        "ConstantFill",
        8,
        [IMAGES],
        {"value": 2.0},
        ["Shape", "ConstantOfShape"],
        np.full(IMAGES.shape, 2, np.float32),
    ),
    "ConstantFill with extra dimensions": ConversionCase(
        "ConstantFill",
        8,
        [VECTOR],
        {"value": 2.0, "extra_shape": [1, 4], "input_as_shape": 0},
        ["Shape", "Concat", "ConstantOfShape"],
        np.full((6, 1, 4), 2, np.float32),
    ),
    "ConstantFill with input as shape": ConversionCase(
        "ConstantFill",
        8,
        [integers(2, 3)],
        {"value": 2.0, "input_as_shape": 1},
        ["Cast", "ConstantOfShape"],
        np.full((2, 3), 2, np.float32),
    ),
    "ConstantFill with input as shape and extra dimensions": ConversionCase(
        "ConstantFill",
        8,
        [integers(2, 3, dtype=np.int32)],
        {"dtype": 7, "input_as_shape": 1, "extra_shape": [4]},
        ["Cast", "Concat", "ConstantOfShape"],
        np.zeros((2, 3, 4), np.int64),
    ),
    "GivenTensorFill of a shape attribute": ConversionCase(
        "GivenTensorFill",
        9,
        [],
        {"values": [1.0, 2.0, 3.0, 4.0], "shape": [2, 2]},
        ["Constant"],
        np.array([[1, 2], [3, 4]], np.float32),
    ),
    "GivenTensorFill without elements": ConversionCase(
        "GivenTensorFill", 9, [], {"shape": [3, 0]}, ["Constant"], np.zeros((3, 0), np.float32)
    ),
    "GivenTensorFill of the output's type": ConversionCase(
        "GivenTensorFill",
        9,
        [],
        {"values": [0.1], "shape": []},
        ["Constant"],
        np.array(np.float32(0.1), np.float64),
    ),
    "GivenTensorFill of the input's shape": ConversionCase(
        "GivenTensorFill",
        9,
        [np.zeros((2, 1), np.float16)],
        {"values": [1.0, 2.0, 3.0, 4.0], "extra_shape": [2]},
        ["Shape", "Concat", "Reshape"],
        np.array([[[1, 2]], [[3, 4]]], np.float16),
    ),
    "GivenTensorFill with input as shape": ConversionCase(
        "GivenTensorFill",
        9,
        [integers(3, 1)],
        {"values": [1.0, 2.0, 3.0], "input_as_shape": 1},
        ["Cast", "Reshape"],
        np.array([[1], [2], [3]], np.float32),
    ),
}

UNCHANGED = {
    "ThresholdedRelu with alpha": ConversionCase("ThresholdedRelu", 7, [VECTOR], {"alpha": 0.75}, []),
    "ThresholdedRelu with default alpha": ConversionCase("ThresholdedRelu", 1, [VECTOR], {}, []),
}


@pytest.mark.parametrize("case", CHANGED.values(), ids=CHANGED)
def test_preserves_outputs(case: ConversionCase) -> None:
    model, feeds = _model(case)
    expected = [case.result] if case.result is not None else run(model, feeds)
    for target in TARGETS:
        converted = convert_version(model, target)
        assert opset_of(converted) == target
        assert_equal(run(converted, feeds), expected)


@pytest.mark.parametrize("case", CHANGED.values(), ids=CHANGED)
def test_emits_expected_operators(case: ConversionCase) -> None:
    converted = convert_version(_model(case)[0], 10)
    assert op_types(converted) == case.replacement
    assert [node.name for node in converted.graph.node if "y" in node.output] == ["old"]


@pytest.mark.parametrize("case", CHANGED.values(), ids=CHANGED)
def test_needs_no_shapes(case: ConversionCase) -> None:
    model, feeds = _model(case, shapes=False)
    expected = [case.result] if case.result is not None else run(model, feeds)
    assert_equal(run(convert_version(model, 13), feeds), expected)


@pytest.mark.parametrize("case", CHANGED.values(), ids=CHANGED)
def test_keeps_nodes_below_the_removal(case: ConversionCase) -> None:
    model = _model(case)[0]
    assert convert_version(model, 8).graph == model.graph


@pytest.mark.parametrize("case", UNCHANGED.values(), ids=UNCHANGED)
def test_keeps_nodes_of_unchanged_definitions(case: ConversionCase) -> None:
    model, feeds = _model(case)
    expected = run(model, feeds)
    for target in TARGETS:
        converted = convert_version(model, target)
        assert converted.graph == model.graph
        assert_equal(run(converted, feeds), expected)


class RefusalCase(NamedTuple):
    """Node, input shapes and expected refusal."""

    op: str
    shapes: Sequence[Sequence[int]]
    attributes: Mapping[str, Any]
    reason: str
    remedy: str = ""


REFUSED = {
    "ATen": RefusalCase(
        "ATen", [(2,)], {"operator": "cumsum"}, "a function of PyTorch", "export the model from PyTorch again"
    ),
    "GRUUnit": RefusalCase(
        "GRUUnit",
        [(1, 2, 3), (1, 2, 9), (2,), (1,)],
        {},
        "gives no formula",
        "use GRU for the whole sequence",
    ),
    "ImageScaler without a bias": RefusalCase(
        "ImageScaler",
        [(1, 3, 2, 2)],
        {},
        "bias is missing, and its definition has no default",
        "set bias",
    ),
    "ImageScaler with too few biases": RefusalCase(
        "ImageScaler", [(1, 3, 2, 2)], {"bias": [1.0]}, "bias has 1 elements for 3 channels"
    ),
    "ImageScaler of rank 3": RefusalCase(
        "ImageScaler", [(3, 2, 2)], {"bias": [1.0, 2.0]}, "'x0' has 3 dimensions"
    ),
    "ParametricSoftplus without alpha": RefusalCase(
        "ParametricSoftplus", [(2,)], {"beta": 1.0}, "alpha is missing", "set alpha"
    ),
    "ScaledTanh without beta": RefusalCase(
        "ScaledTanh", [(2,)], {"alpha": 1.0}, "beta is missing", "set beta"
    ),
    "Crop without border and scale": RefusalCase(
        "Crop",
        [(1, 3, 2, 2)],
        {},
        "border and scale are both missing",
        "set border to left, top, right, bottom",
    ),
    "Crop with two borders": RefusalCase(
        "Crop", [(1, 3, 2, 2)], {"border": [1, 1]}, "border is [1, 1], expected 4 numbers of at least 0"
    ),
    "Crop with a negative border": RefusalCase(
        "Crop", [(1, 3, 2, 2)], {"border": [0, 0, -1, 0]}, "border is [0, 0, -1, 0]"
    ),
    "Crop with one size": RefusalCase(
        "Crop", [(1, 3, 2, 2)], {"border": [0] * 4, "scale": [1]}, "scale is [1], expected 2 numbers"
    ),
    "Crop of rank 3": RefusalCase("Crop", [(3, 2, 2)], {"border": [0] * 4}, "'x0' has 3 dimensions"),
    "MeanVarianceNormalization of rank 3": RefusalCase(
        "MeanVarianceNormalization", [(3, 2, 2)], {}, "'x0' has 3 dimensions"
    ),
    "MeanVarianceNormalization with an attribute of version 9": RefusalCase(
        "MeanVarianceNormalization", [(1, 3, 2, 2)], {"axes": [1]}, "axes is set", "import opset 9"
    ),
    "ConstantFill without shape": RefusalCase(
        "ConstantFill", [], {"value": 1.0}, "neither an input nor the attribute shape", "set shape"
    ),
    "ConstantFill with two shapes": RefusalCase(
        "ConstantFill", [(2,)], {"shape": [2]}, "both the input and the attribute shape", "remove one"
    ),
    "ConstantFill with extra_shape without input": RefusalCase(
        "ConstantFill", [], {"shape": [2], "extra_shape": [2]}, "require an input", "to the whole shape"
    ),
    "ConstantFill with input_as_shape without input": RefusalCase(
        "ConstantFill", [], {"shape": [2], "input_as_shape": 1}, "require an input", "to the whole shape"
    ),
    "ConstantFill with negative size": RefusalCase("ConstantFill", [], {"shape": [-1]}, "a negative size"),
    "ConstantFill with negative extra size": RefusalCase(
        "ConstantFill", [(2,)], {"extra_shape": [-1]}, "a negative size"
    ),
    "ConstantFill with unsupported type": RefusalCase(
        "ConstantFill", [], {"shape": [2], "dtype": 10}, "'dtype' is 10", "correct the node"
    ),
    "ConstantFill of integers with fractional value": RefusalCase(
        "ConstantFill",
        [],
        {"shape": [2], "dtype": 6, "value": 2.5},
        "value is 2.5, and its conversion to int32",
    ),
    "ConstantFill of integers with too large value": RefusalCase(
        "ConstantFill", [], {"shape": [2], "dtype": 6, "value": 2.0**31}, "conversion to int32"
    ),
    "ConstantFill of integers with NaN": RefusalCase(
        "ConstantFill", [], {"shape": [2], "dtype": 7, "value": float("nan")}, "value is nan"
    ),
    "ConstantFill of booleans with value 2": RefusalCase(
        "ConstantFill",
        [],
        {"shape": [2], "dtype": 9, "value": 2.0},
        "value is 2.0, and its conversion to bool",
    ),
    "GivenTensorFill with wrong number of values": RefusalCase(
        "GivenTensorFill", [], {"shape": [2, 2], "values": [1.0]}, "values has 1 numbers, shape [2, 2]"
    ),
    "GivenTensorFill with two shapes": RefusalCase(
        "GivenTensorFill", [(1,)], {"shape": [1], "values": [1.0]}, "both the input and the attribute shape"
    ),
    "GivenTensorFill without values": RefusalCase(
        "GivenTensorFill", [(0,)], {}, "values is missing", "remove the input"
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refuses_nodes_without_replacement(case: RefusalCase) -> None:
    feeds = [np.zeros(shape, np.float32) for shape in case.shapes]
    model, _ = _model(ConversionCase(case.op, 8, feeds, case.attributes, [], np.zeros((), np.float32)))
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, 13)
    (refusal,) = caught.value.refusals
    assert case.reason in refusal.reason
    assert case.remedy in refusal.remedy


REQUIRED_ATTRIBUTES: Mapping[str, Mapping[str, Any]] = {
    "Affine": {},
    "ImageScaler": {"bias": [1.0]},
    "ParametricSoftplus": {"alpha": 1.0, "beta": 1.0},
    "Scale": {},
    "ScaledTanh": {"alpha": 1.0, "beta": 1.0},
}


@pytest.mark.parametrize("op", REQUIRED_ATTRIBUTES)
def test_refuses_unknown_element_type_of_data(op: str) -> None:
    producer = helper.make_node("Anything", ["x0"], ["x1"], domain="com.acme")
    model = build(
        [producer, _node(op, ["x1"], REQUIRED_ATTRIBUTES[op])], {"x0": IMAGES}, ["y"], {"": 7, "com.acme": 1}
    )
    with pytest.raises(ConversionRefused, match="the element type of 'x1' is unknown"):
        convert_version(model, 13)


TYPES = {
    "type of a float input": (np.zeros(2, np.float16), {}, np.float16),
    "float for input as shape": (integers(2), {"input_as_shape": 1}, np.float32),
    "float without an input": (None, {"shape": [2]}, np.float32),
}


@pytest.mark.parametrize(("shape_source", "attributes", "dtype"), TYPES.values(), ids=TYPES)
def test_infers_undeclared_type_of_fill(
    shape_source: Array | None, attributes: Mapping[str, Any], dtype: type[np.generic]
) -> None:
    feeds = {} if shape_source is None else {"x0": shape_source}
    fill = _node("GivenTensorFill", list(feeds), {"values": [1.0, 2.0], **attributes})
    consumer = helper.make_node("Abs", ["y"], ["z"])
    model = build([fill, consumer], feeds, {"z": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}, 9)
    assert_equal(run(convert_version(model, 13), feeds), [np.array([1, 2], dtype)])


def test_refuses_fill_of_unknown_type() -> None:
    producer = helper.make_node("Anything", ["x0"], ["x1"], domain="com.acme")
    fill = _node("GivenTensorFill", ["x1"], {"values": [1.0]})
    consumer = helper.make_node("Abs", ["y"], ["z"])
    model = build([producer, fill, consumer], {"x0": IMAGES}, ["z"], {"": 9, "com.acme": 1})
    with pytest.raises(ConversionRefused, match="the element type of 'y' is unknown"):
        convert_version(model, 13)


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
def test_resolves_operator_until_removal(op: str) -> None:
    removed_in, remedy = REMOVED[op]
    for opset in (1, 7, removed_in - 1):
        assert default_registry().get_schema(op, opset).status == "EXPERIMENTAL"
    for opset in (removed_in, 17):
        with pytest.raises(
            OperatorRemoved, match=rf"{op} was removed from ai\.onnx in opset {removed_in}"
        ) as caught:
            default_registry().get_schema(op, opset)
        assert remedy in caught.value.remedy


@pytest.mark.parametrize(("op", "opset"), [("MeanVarianceNormalization", 9), ("ThresholdedRelu", 10)])
def test_resolves_later_stable_version(op: str, opset: int) -> None:
    before, after = (default_registry().get_schema(op, each) for each in (opset - 1, opset))
    assert (before.since_version, before.status) == (1, "EXPERIMENTAL")
    assert (after.since_version, after.status) == (opset, "STABLE")


def test_converts_a_removed_operator_in_a_later_opset() -> None:
    model, _ = _model(CHANGED["Scale with scale"]._replace(opset=11))
    assert op_types(convert_version(model, 13)) == ["Mul"]
