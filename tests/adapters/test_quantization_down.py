"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear on their way down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, build, op_types

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
RANDOM = np.random.default_rng(0)
DATA = (RANDOM.standard_normal((3, 4, 6)) * 20).astype(np.float32)
SCALE = np.array(0.3, np.float32)
ALONG = RANDOM.uniform(0.1, 0.5, 4).astype(np.float32)
BLOCKS = RANDOM.uniform(0.1, 0.5, (3, 2, 6)).astype(np.float32)
TARGETS = [24, 22, 20, 18, 12, 10, 9, 7]
Given = Mapping[str, Array]


def _model(
    op: str, data: Array, given: Given, opset: int, result: type, constant: bool, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    node = helper.make_node(op, ["x", *given], ["y"], name="node", **attributes)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(result))
    feeds = {"x": data} if constant else {"x": data, **given}
    held = given if constant else {}
    return build([node], feeds, {"y": element}, opset, initializers=held, ir_version=10), feeds


QUANTIZED: dict[str, tuple[Given, int, type, dict[str, Any]]] = {
    "one scale": ({"s": SCALE}, 25, np.uint8, {}),
    "one scale, in a list": ({"s": SCALE[None]}, 25, np.uint8, {}),
    "a zero point": ({"s": SCALE, "z": np.array(-7, np.int8)}, 25, np.int8, {}),
    "a scale for each channel": (
        {"s": ALONG, "z": np.arange(4, dtype=np.uint8)},
        25,
        np.uint8,
        {"axis": -2},
    ),
    "blocks": ({"s": BLOCKS}, 25, np.uint8, {"axis": 1, "block_size": 2}),
    "blocks with zero points": (
        {"s": BLOCKS, "z": np.full((3, 2, 6), 3, np.int8)},
        25,
        np.int8,
        {"axis": 1, "block_size": 2},
    ),
    "a type by its name": ({"s": SCALE}, 25, np.int8, {"output_dtype": TensorProto.INT8}),
    "a type by its name, for each channel": (
        {"s": ALONG},
        25,
        np.int8,
        {"axis": 1, "output_dtype": TensorProto.INT8},
    ),
    "16 bits": ({"s": np.array(0.003, np.float32), "z": np.array(5, np.int16)}, 25, np.int16, {}),
    "saturate stated, which is about 8-bit floats": ({"s": SCALE}, 19, np.uint8, {"saturate": 0}),
}


STEPS_DOWN = [
    pytest.param(*row, target, id=f"{name} to {target}")
    for name, row in QUANTIZED.items()
    for target in TARGETS
    if target < row[1]
]


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize(("given", "opset", "result", "attributes", "target"), STEPS_DOWN)
def test_quantize(
    given: Given,
    opset: int,
    result: type,
    attributes: Mapping[str, Any],
    target: int,
    constant: bool,
    converted: Converted,
) -> None:
    model, feeds = _model("QuantizeLinear", DATA, given, opset, result, constant, **attributes)
    converted(model, target, feeds, tolerance=0)


@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
@pytest.mark.parametrize("shapes", [True, False], ids=["known rank", "unknown rank"])
def test_a_number_by_a_scale_in_a_list_stays_a_number(
    op_type: str, shapes: bool, converted: Converted
) -> None:
    kind = np.dtype(np.float32 if op_type == "QuantizeLinear" else np.int16)
    feeds: dict[str, Array] = {"x": np.array(3, kind)}
    held: dict[str, Array] = {"s": SCALE[None], "z": np.array([5], np.int16)}
    element = TensorProto.INT16 if op_type == "QuantizeLinear" else TensorProto.FLOAT
    node = helper.make_node(op_type, ["x", "s", "z"], ["y"], name="node")
    model = build([node], feeds, {"y": element}, 21, initializers=held, ir_version=10)
    if not shapes:
        model.graph.input[0].type.tensor_type.ClearField("shape")
    converted(model, 20, feeds)


@pytest.mark.parametrize("target", [22, 18, 10, 9])
@pytest.mark.parametrize("precision", [{}, {"precision": TensorProto.FLOAT}], ids=["default", "float"])
def test_half_precision_is_quantized_in_float(
    precision: Mapping[str, Any], target: int, converted: Converted
) -> None:
    given: Given = {"s": SCALE.astype(np.float16), "z": np.array(9, np.uint8)}
    data = DATA.astype(np.float16)
    model, feeds = _model("QuantizeLinear", data, given, 25, np.uint8, True, **precision)
    converted(model, target, feeds, tolerance=0)


DEQUANTIZED: dict[str, tuple[type, Given, type, dict[str, Any]]] = {
    "one scale": (np.uint8, {"s": SCALE}, np.float32, {}),
    "a zero point": (np.int8, {"s": SCALE, "z": np.array(-7, np.int8)}, np.float32, {}),
    "whole numbers of 32 bits": (np.int32, {"s": SCALE, "z": np.array(0, np.int32)}, np.float32, {}),
    "a scale for each channel": (
        np.uint8,
        {"s": ALONG, "z": np.arange(4, dtype=np.uint8)},
        np.float32,
        {"axis": 1},
    ),
    "blocks": (np.int8, {"s": BLOCKS}, np.float32, {"axis": 1, "block_size": 2}),
    "16 bits": (np.uint16, {"s": SCALE, "z": np.array(700, np.uint16)}, np.float32, {}),
    "half precision": (np.uint8, {"s": SCALE.astype(np.float16)}, np.float16, {}),
    "a narrower result": (np.uint8, {"s": SCALE}, np.float16, {"output_dtype": TensorProto.FLOAT16}),
    "a wider result": (
        np.uint8,
        {"s": SCALE.astype(np.float16)},
        np.float32,
        {"output_dtype": TensorProto.FLOAT},
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kind", "given", "result", "attributes"), DEQUANTIZED.values(), ids=DEQUANTIZED)
def test_dequantize(
    kind: type, given: Given, result: type, attributes: Mapping[str, Any], target: int, converted: Converted
) -> None:
    low = 0 if np.iinfo(kind).min == 0 else -100
    data: Array = RANDOM.integers(low, 120, (3, 4, 6)).astype(kind)
    model, feeds = _model("DequantizeLinear", data, given, 25, result, True, **attributes)
    converted(model, target, feeds)


@pytest.mark.parametrize(
    ("given", "attributes", "target", "expected"),
    [
        pytest.param({"s": SCALE}, {}, 10, ["QuantizeLinear"], id="one scale needs no arithmetic"),
        pytest.param({"s": SCALE[None]}, {}, 10, ["QuantizeLinear"], id="nor does one in a list"),
        pytest.param({"s": ALONG}, {"axis": 1}, 13, ["QuantizeLinear"], id="nor do channels from 13 on"),
        pytest.param({"s": BLOCKS}, {"axis": 1, "block_size": 2}, 21, ["QuantizeLinear"], id="nor blocks"),
        pytest.param(
            {"s": SCALE}, {"output_dtype": TensorProto.INT8}, 13, ["QuantizeLinear"], id="a zero tells a type"
        ),
    ],
)
def test_direct_forms(
    given: Given, attributes: Mapping[str, Any], target: int, expected: Sequence[str], converted: Converted
) -> None:
    result = np.int8 if attributes.get("output_dtype") else np.uint8
    model, feeds = _model("QuantizeLinear", DATA, given, 25, result, True, **attributes)
    assert op_types(converted(model, target, feeds, tolerance=0)) == expected


REFUSED = {
    "a result of 8-bit floats": (TensorProto.FLOAT8E5M2, 18, "float8e5m2"),
    "a result of 4 bits": (TensorProto.INT4, 20, "int4"),
    "a result of 4-bit floats": (TensorProto.FLOAT4E2M1, 22, "float4e2m1"),
    "a result of 2 bits": (TensorProto.UINT2, 24, "uint2"),
}


@pytest.mark.parametrize(("element", "target", "name"), REFUSED.values(), ids=REFUSED)
def test_types_that_no_older_model_holds(element: int, target: int, name: str, refusal: Refusing) -> None:
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["y"], name="node", output_dtype=element)
    model = build([node], {"x": DATA}, {"y": element}, 25, initializers={"s": SCALE}, ir_version=13)
    assert f"is tensor({name}), which " in refusal(model, target).reason


NARROW = {
    "int4": (TensorProto.INT4, 21, [-8, 7, 0, -1, 3, 5]),
    "uint4": (TensorProto.UINT4, 21, [0, 15, 8, 1, 9, 2]),
    "int2": (TensorProto.INT2, 25, [-2, 1, 0, -1, 1, 0]),
    "uint2": (TensorProto.UINT2, 25, [0, 3, 2, 1, 3, 0]),
}


@pytest.mark.parametrize("zero", [None, 1], ids=["no zero point", "a zero point"])
@pytest.mark.parametrize("target", [20, 18, 12, 9])
@pytest.mark.parametrize(("kind", "opset", "values"), NARROW.values(), ids=NARROW)
def test_constants_of_a_few_bits_hold_the_same_in_eight(
    kind: int, opset: int, values: list[int], target: int, zero: int | None, converted: Converted
) -> None:
    scale = np.array([0.5, 0.25, 2.0], np.float32)
    names = ["w", "s", *(["z"] if zero else [])]
    nodes = [
        helper.make_node("DequantizeLinear", names, ["d"], name="node", axis=1),
        helper.make_node("Add", ["x", "d"], ["y"]),
    ]
    feeds: dict[str, Array] = {"x": np.zeros((2, 3), np.float32)}
    model = build(nodes, feeds, ["y"], opset, initializers={"s": scale}, ir_version=13)
    model.graph.initializer.append(helper.make_tensor("w", kind, [2, 3], values))
    if zero:
        model.graph.initializer.append(helper.make_tensor("z", kind, [3], [zero] * 3))
    expected = (np.array(values, np.float32).reshape(2, 3) - (zero or 0)) * scale
    converted(model, target, feeds, [expected])


def test_computed_numbers_of_a_few_bits_are_refused(refusal: Refusing) -> None:
    node = helper.make_node("DequantizeLinear", ["w", "s"], ["y"])
    model = build([node], {}, ["y"], 21, initializers={"s": SCALE}, ir_version=10)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.INT4, [2]))
    assert refusal(model, 20).reason == "'w' is tensor(int4), which opset 21 introduced"


def test_blocks_of_an_unknown_size_are_refused(refusal: Refusing) -> None:
    model, _ = _model("QuantizeLinear", DATA, {"s": BLOCKS}, 21, np.uint8, True, axis=1, block_size=2)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "n"
    assert refusal(model, 20).reason == ("the number of elements in the last block of 'x' is unknown")


def test_a_named_type_needs_the_shape_of_the_scale(refusal: Refusing) -> None:
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["y"], name="node", output_dtype=TensorProto.INT8)
    feeds = {"x": DATA, "s": SCALE}
    model = build([node], feeds, {"y": TensorProto.INT8}, 21, shapes=False)
    assert "output_dtype int8 needs a zero point here" in refusal(model, 20).reason


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(DATA, id="both signs"),
        pytest.param(np.abs(DATA) + 1, id="positive"),
        pytest.param(-np.abs(DATA) - 1, id="negative"),
        pytest.param(np.zeros((2, 3), np.float32), id="nothing but zeros"),
    ],
)
@pytest.mark.parametrize("target", [10, 9, 7])
def test_dynamic_quantization(data: Array, target: int, converted: Converted) -> None:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"], name="node")
    kinds = {"y": TensorProto.UINT8, "s": TensorProto.FLOAT, "z": TensorProto.UINT8}
    model = build([node], {"x": data}, kinds, 11)
    converted(model, target, {"x": data}, tolerance=1e-6)


@pytest.mark.parametrize("target", [18, 12, 10, 9])
@pytest.mark.parametrize("opset", [13, 19, 21])
def test_between_operators_of_a_runtime(opset: int, target: int, converted: Converted) -> None:
    """What a foreign operator gives has no known type: the data are cast, the zero point tells it."""
    given: dict[str, Array] = {"s": SCALE, "z": np.array(3, np.uint8)}
    nodes = [
        helper.make_node("QuickGelu", ["x"], ["g"], domain="com.microsoft"),
        helper.make_node("QuantizeLinear", ["g", "s", "z"], ["q"], name="first"),
        helper.make_node("QLinearSigmoid", ["q", "s", "z", "s", "z"], ["p"], domain="com.microsoft"),
        helper.make_node("DequantizeLinear", ["p", "s", "z"], ["y"], name="second"),
    ]
    opsets = {"": opset, "com.microsoft": 1}
    converted(build(nodes, {"x": DATA}, ["y"], opsets, initializers=given), target, {"x": DATA})


@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
def test_zero_points_of_a_block_are_repeated_as_a_type_that_gather_takes(op_type: str) -> None:
    wide: Array = np.ones((2, 2), np.float32)
    narrow = wide.astype(ml_dtypes.float8_e4m3fn)
    data, kind = (wide, TensorProto.FLOAT8E4M3FN) if op_type[0] == "Q" else (narrow, TensorProto.FLOAT)
    given: dict[str, Array] = {"s": np.full((1, 2), 0.5, np.float32), "z": narrow[:1]}
    node = helper.make_node(op_type, ["x", "s", "z"], ["y"], name="node", axis=0, block_size=2)
    model = convert_version(build([node], {"x": data}, {"y": kind}, 21, initializers=given), 19)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    assert inferred.graph.output[0].type.tensor_type.elem_type == kind
