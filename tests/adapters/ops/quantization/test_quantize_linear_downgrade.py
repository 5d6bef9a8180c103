"""Downgrades of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types, run, run_reference

from opshift import convert_version

RANDOM = np.random.default_rng(0)
DATA = (RANDOM.standard_normal((3, 4, 6)) * 20).astype(np.float32)
SCALE = np.array(0.3, np.float32)
CHANNEL_SCALES = RANDOM.uniform(0.1, 0.5, 4).astype(np.float32)
BLOCK_SCALES = RANDOM.uniform(0.1, 0.5, (3, 2, 6)).astype(np.float32)
TARGETS = [24, 22, 20, 18, 12, 10, 9, 7]
Parameters = Mapping[str, Array]


def _model(
    op_type: str,
    data: Array,
    parameters: Parameters,
    opset: int,
    result_dtype: type,
    constant: bool,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    node = helper.make_node(op_type, ["x", *parameters], ["y"], name="node", **attributes)
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(result_dtype))
    feeds = {"x": data} if constant else {"x": data, **parameters}
    initializers = parameters if constant else {}
    return build([node], feeds, {"y": element_type}, opset, initializers=initializers, ir_version=10), feeds


QUANTIZE_CASES: dict[str, tuple[Parameters, int, type, dict[str, Any]]] = {
    "scalar scale": ({"s": SCALE}, 25, np.uint8, {}),
    "scale of shape 1": ({"s": SCALE[None]}, 25, np.uint8, {}),
    "zero point": ({"s": SCALE, "z": np.array(-7, np.int8)}, 25, np.int8, {}),
    "scale per channel": (
        {"s": CHANNEL_SCALES, "z": np.arange(4, dtype=np.uint8)},
        25,
        np.uint8,
        {"axis": -2},
    ),
    "blocks": ({"s": BLOCK_SCALES}, 25, np.uint8, {"axis": 1, "block_size": 2}),
    "blocks with zero points": (
        {"s": BLOCK_SCALES, "z": np.full((3, 2, 6), 3, np.int8)},
        25,
        np.int8,
        {"axis": 1, "block_size": 2},
    ),
    "output_dtype": ({"s": SCALE}, 25, np.int8, {"output_dtype": TensorProto.INT8}),
    "output_dtype per channel": (
        {"s": CHANNEL_SCALES},
        25,
        np.int8,
        {"axis": 1, "output_dtype": TensorProto.INT8},
    ),
    "16-bit integers": ({"s": np.array(0.003, np.float32), "z": np.array(5, np.int16)}, 25, np.int16, {}),
    "saturate, which affects only float8": ({"s": SCALE}, 19, np.uint8, {"saturate": 0}),
}


QUANTIZE_STEPS = [
    pytest.param(*row, target, id=f"{name} to {target}")
    for name, row in QUANTIZE_CASES.items()
    for target in TARGETS
    if target < row[1]
]


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize(("parameters", "opset", "result_dtype", "attributes", "target"), QUANTIZE_STEPS)
def test_downgrades_quantize_linear(
    parameters: Parameters,
    opset: int,
    result_dtype: type,
    attributes: Mapping[str, Any],
    target: int,
    constant: bool,
) -> None:
    model, feeds = _model("QuantizeLinear", DATA, parameters, opset, result_dtype, constant, **attributes)
    convert_and_check(model, target, feeds, tolerance=0)


@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
@pytest.mark.parametrize("shapes", [True, False], ids=["known rank", "unknown rank"])
def test_keeps_a_scalar_with_a_scale_of_shape_1(op_type: str, shapes: bool) -> None:
    dtype = np.dtype(np.float32 if op_type == "QuantizeLinear" else np.int16)
    feeds: dict[str, Array] = {"x": np.array(3, dtype)}
    initializers: dict[str, Array] = {"s": SCALE[None], "z": np.array([5], np.int16)}
    element_type = TensorProto.INT16 if op_type == "QuantizeLinear" else TensorProto.FLOAT
    node = helper.make_node(op_type, ["x", "s", "z"], ["y"], name="node")
    model = build([node], feeds, {"y": element_type}, 21, initializers=initializers, ir_version=10)
    if not shapes:
        model.graph.input[0].type.tensor_type.ClearField("shape")
    convert_and_check(model, 20, feeds)


@pytest.mark.parametrize("target", [13, 12, 9])
@pytest.mark.parametrize("axis", [{}, {"axis": 0}], ids=["default axis", "axis 0"])
@pytest.mark.parametrize(
    ("op_type", "dtype"), [("QuantizeLinear", np.float32), ("DequantizeLinear", np.int8)]
)
def test_keeps_a_scalar_with_a_scale_of_unknown_size(
    op_type: str, dtype: type, axis: Mapping[str, Any], target: int
) -> None:
    parameters: dict[str, Array] = {"s": SCALE[None], "z": np.array([5], np.int8)}
    result = np.int8 if op_type == "QuantizeLinear" else np.float32
    model, feeds = _model(op_type, np.array(7, dtype), parameters, 19, result, constant=False, **axis)
    expected = run(model, feeds)
    for each in model.graph.input[1:]:
        each.type.tensor_type.shape.dim[0].dim_param = "n"
    convert_and_check(model, target, feeds, expected)


@pytest.mark.parametrize("target", [22, 18, 10, 9])
@pytest.mark.parametrize("precision", [{}, {"precision": TensorProto.FLOAT}], ids=["default", "float"])
def test_quantizes_float16_in_float(precision: Mapping[str, Any], target: int) -> None:
    parameters: Parameters = {"s": SCALE.astype(np.float16), "z": np.array(9, np.uint8)}
    data = DATA.astype(np.float16)
    model, feeds = _model("QuantizeLinear", data, parameters, 25, np.uint8, True, **precision)
    convert_and_check(model, target, feeds, tolerance=0)


@pytest.mark.parametrize("target", [22, 20, 18, 9])
@pytest.mark.parametrize("parameters", [{"s": SCALE[None]}, {"s": BLOCK_SCALES}], ids=["scalar", "blocks"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_data_wider_than_the_scale_do_not_overflow(dtype: type, parameters: Parameters, target: int) -> None:
    parameters = {name: each.astype(np.float16) for name, each in parameters.items()}
    attributes = {"axis": 1, "block_size": 2} if parameters["s"].ndim == 3 else {}
    data: Array = (DATA * 1e4).astype(dtype)
    model, feeds = _model("QuantizeLinear", data, parameters, 23, np.uint8, True, **attributes)
    convert_and_check(model, target, feeds, run_reference(model, feeds), tolerance=0)


DEQUANTIZE_CASES: dict[str, tuple[type, Parameters, type, dict[str, Any]]] = {
    "scalar scale": (np.uint8, {"s": SCALE}, np.float32, {}),
    "zero point": (np.int8, {"s": SCALE, "z": np.array(-7, np.int8)}, np.float32, {}),
    "32-bit integers": (np.int32, {"s": SCALE, "z": np.array(0, np.int32)}, np.float32, {}),
    "scale per channel": (
        np.uint8,
        {"s": CHANNEL_SCALES, "z": np.arange(4, dtype=np.uint8)},
        np.float32,
        {"axis": 1},
    ),
    "blocks": (np.int8, {"s": BLOCK_SCALES}, np.float32, {"axis": 1, "block_size": 2}),
    "16-bit integers": (np.uint16, {"s": SCALE, "z": np.array(700, np.uint16)}, np.float32, {}),
    "float16": (np.uint8, {"s": SCALE.astype(np.float16)}, np.float16, {}),
    "narrower output type": (np.uint8, {"s": SCALE}, np.float16, {"output_dtype": TensorProto.FLOAT16}),
    "wider output type": (
        np.uint8,
        {"s": SCALE.astype(np.float16)},
        np.float32,
        {"output_dtype": TensorProto.FLOAT},
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("dtype", "parameters", "result_dtype", "attributes"), DEQUANTIZE_CASES.values(), ids=DEQUANTIZE_CASES
)
def test_downgrades_dequantize_linear(
    dtype: type, parameters: Parameters, result_dtype: type, attributes: Mapping[str, Any], target: int
) -> None:
    low = 0 if np.iinfo(dtype).min == 0 else -100
    data: Array = RANDOM.integers(low, 120, (3, 4, 6)).astype(dtype)
    model, feeds = _model("DequantizeLinear", data, parameters, 25, result_dtype, True, **attributes)
    convert_and_check(model, target, feeds)


@pytest.mark.parametrize(
    ("parameters", "attributes", "target", "expected"),
    [
        pytest.param({"s": SCALE}, {}, 10, ["QuantizeLinear"], id="scalar scale"),
        pytest.param({"s": SCALE[None]}, {}, 10, ["QuantizeLinear"], id="scale of shape 1"),
        pytest.param(
            {"s": CHANNEL_SCALES}, {"axis": 1}, 13, ["QuantizeLinear"], id="scale per channel at opset 13"
        ),
        pytest.param(
            {"s": BLOCK_SCALES}, {"axis": 1, "block_size": 2}, 21, ["QuantizeLinear"], id="blocks at opset 21"
        ),
        pytest.param(
            {"s": SCALE},
            {"output_dtype": TensorProto.INT8},
            13,
            ["QuantizeLinear"],
            id="output_dtype as zero point",
        ),
    ],
)
def test_keeps_one_node_if_an_older_version_suffices(
    parameters: Parameters, attributes: Mapping[str, Any], target: int, expected: Sequence[str]
) -> None:
    result = np.int8 if attributes.get("output_dtype") else np.uint8
    model, feeds = _model("QuantizeLinear", DATA, parameters, 25, result, True, **attributes)
    assert op_types(convert_and_check(model, target, feeds, tolerance=0)) == expected


UNSUPPORTED_OUTPUT_TYPES = {
    "8-bit floats": (TensorProto.FLOAT8E5M2, 18, "float8e5m2"),
    "4-bit integers": (TensorProto.INT4, 20, "int4"),
    "4-bit floats": (TensorProto.FLOAT4E2M1, 22, "float4e2m1"),
    "2-bit integers": (TensorProto.UINT2, 24, "uint2"),
}


@pytest.mark.parametrize(
    ("element_type", "target", "type_name"), UNSUPPORTED_OUTPUT_TYPES.values(), ids=UNSUPPORTED_OUTPUT_TYPES
)
def test_refuses_output_types_unknown_to_the_target(element_type: int, target: int, type_name: str) -> None:
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["y"], name="node", output_dtype=element_type)
    model = build([node], {"x": DATA}, {"y": element_type}, 25, initializers={"s": SCALE}, ir_version=13)
    refusal = refusal_of(model, target)
    assert type_name in refusal.reason
    assert (refusal.code, refusal.subject, refusal.nearest) == ("type.unsupported", type_name, target + 1)


NARROW_INTEGERS = {
    "int4": (TensorProto.INT4, 21, [-8, 7, 0, -1, 3, 5]),
    "uint4": (TensorProto.UINT4, 21, [0, 15, 8, 1, 9, 2]),
    "int2": (TensorProto.INT2, 25, [-2, 1, 0, -1, 1, 0]),
    "uint2": (TensorProto.UINT2, 25, [0, 3, 2, 1, 3, 0]),
}


@pytest.mark.parametrize("zero_point", [None, 1], ids=["no zero point", "zero point"])
@pytest.mark.parametrize("target", [20, 18, 12, 9])
@pytest.mark.parametrize(("element_type", "opset", "values"), NARROW_INTEGERS.values(), ids=NARROW_INTEGERS)
def test_widens_narrow_integer_constants_to_8_bits(
    element_type: int, opset: int, values: list[int], target: int, zero_point: int | None
) -> None:
    scale = np.array([0.5, 0.25, 2.0], np.float32)
    inputs = ["w", "s", *(["z"] if zero_point else [])]
    nodes = [
        helper.make_node("DequantizeLinear", inputs, ["d"], name="node", axis=1),
        helper.make_node("Add", ["x", "d"], ["y"]),
    ]
    feeds: dict[str, Array] = {"x": np.zeros((2, 3), np.float32)}
    model = build(nodes, feeds, ["y"], opset, initializers={"s": scale}, ir_version=13)
    model.graph.initializer.append(helper.make_tensor("w", element_type, [2, 3], values))
    if zero_point:
        model.graph.initializer.append(helper.make_tensor("z", element_type, [3], [zero_point] * 3))
    expected = (np.array(values, np.float32).reshape(2, 3) - (zero_point or 0)) * scale
    convert_and_check(model, target, feeds, [expected])


def test_refuses_computed_narrow_integers() -> None:
    node = helper.make_node("DequantizeLinear", ["w", "s"], ["y"])
    model = build([node], {}, ["y"], 21, initializers={"s": SCALE}, ir_version=10)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.INT4, [2]))
    assert refusal_of(model, 20).reason == "'w' is tensor(int4), which opset 21 introduced"


def test_refuses_blocks_of_unknown_size() -> None:
    model, _ = _model("QuantizeLinear", DATA, {"s": BLOCK_SCALES}, 21, np.uint8, True, axis=1, block_size=2)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "n"
    assert refusal_of(model, 20).reason == "the size of dimension 1 of 'x' is unknown"


def test_refuses_output_dtype_with_a_scale_of_unknown_shape() -> None:
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["y"], name="node", output_dtype=TensorProto.INT8)
    feeds = {"x": DATA, "s": SCALE}
    model = build([node], feeds, {"y": TensorProto.INT8}, 21, shapes=False)
    assert "output_dtype int8 needs a zero point here" in refusal_of(model, 20).reason


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(DATA, id="both signs"),
        pytest.param(np.abs(DATA) + 1, id="positive"),
        pytest.param(-np.abs(DATA) - 1, id="negative"),
        pytest.param(np.zeros((2, 3), np.float32), id="zeros"),
    ],
)
@pytest.mark.parametrize("target", [10, 9, 7])
def test_downgrades_dynamic_quantize_linear(data: Array, target: int) -> None:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"], name="node")
    element_types = {"y": TensorProto.UINT8, "s": TensorProto.FLOAT, "z": TensorProto.UINT8}
    model = build([node], {"x": data}, element_types, 11)
    convert_and_check(model, target, {"x": data}, tolerance=1e-6)


@pytest.mark.parametrize("target", [18, 12, 10, 9])
@pytest.mark.parametrize("opset", [13, 19, 21])
def test_downgrades_nodes_between_onnxruntime_operators(opset: int, target: int) -> None:
    """Outputs of com.microsoft have an unknown type: data are cast, and the zero point provides the type."""
    initializers: dict[str, Array] = {"s": SCALE, "z": np.array(3, np.uint8)}
    nodes = [
        helper.make_node("QuickGelu", ["x"], ["g"], domain="com.microsoft"),
        helper.make_node("QuantizeLinear", ["g", "s", "z"], ["q"], name="first"),
        helper.make_node("QLinearSigmoid", ["q", "s", "z", "s", "z"], ["p"], domain="com.microsoft"),
        helper.make_node("DequantizeLinear", ["p", "s", "z"], ["y"], name="second"),
    ]
    opsets = {"": opset, "com.microsoft": 1}
    convert_and_check(
        build(nodes, {"x": DATA}, ["y"], opsets, initializers=initializers), target, {"x": DATA}
    )


@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
def test_repeats_block_zero_points_in_a_type_that_gather_supports(op_type: str) -> None:
    wide: Array = np.ones((2, 2), np.float32)
    narrow = wide.astype(ml_dtypes.float8_e4m3fn)
    data, output_type = (wide, TensorProto.FLOAT8E4M3FN) if op_type[0] == "Q" else (narrow, TensorProto.FLOAT)
    initializers: dict[str, Array] = {"s": np.full((1, 2), 0.5, np.float32), "z": narrow[:1]}
    node = helper.make_node(op_type, ["x", "s", "z"], ["y"], name="node", axis=0, block_size=2)
    model = convert_version(build([node], {"x": data}, {"y": output_type}, 21, initializers=initializers), 19)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    assert inferred.graph.output[0].type.tensor_type.elem_type == output_type


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 4)])
@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
def test_refuses_a_matrix_of_scales_without_blocks(op_type: str, shape: tuple[int, ...]) -> None:
    parameters: dict[str, Array] = {"s": np.ones(shape, np.float32), "z": np.zeros(shape, np.int8)}
    types = (np.float32, np.int8) if op_type[0] == "Q" else (np.int8, np.float32)
    data: Array = np.ones((2, 4), types[0])
    model, feeds = _model(op_type, data, parameters, 13, types[1], False)
    with pytest.raises(Exception, match=r"scale must be"):
        run(model, feeds)
    refusal = refusal_of(model, 12)
    assert refusal.reason.endswith("'s' has rank 2, but without block_size the rank is 0 or 1")
    assert refusal.remedy == "correct the shape, or set block_size"


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("wrong", ["s", "z"])
@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
def test_refuses_blocks_whose_scale_or_zero_point_has_another_rank(
    op_type: str, wrong: str, constant: bool
) -> None:
    parameters: dict[str, Array] = {"s": np.ones((8, 16), np.float32), "z": np.zeros((8, 16), np.int8)}
    parameters[wrong] = parameters[wrong][:, 0]
    types = (np.float32, np.int8) if op_type[0] == "Q" else (np.int8, np.float32)
    data: Array = np.ones((16, 16), types[0])
    model, feeds = _model(op_type, data, parameters, 21, types[1], constant, axis=0, block_size=2)
    with pytest.raises(Exception, match=r"(?i)block|shape"):
        run(model, feeds)
    refusal = refusal_of(model, 20)
    assert refusal.reason.endswith(f"{wrong!r} has rank 1, but blocks of 'x' require rank 2")
    assert refusal.remedy == "correct the shape, or remove block_size"
