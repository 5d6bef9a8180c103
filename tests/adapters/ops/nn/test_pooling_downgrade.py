"""Downgrades of pooling: ceil_mode becomes padding, and dilated windows are gathered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types, run

from opshift import convert_version

IMAGE = np.random.default_rng(0).standard_normal((2, 3, 7, 10)).astype(np.float32)
FEEDS = {"x": IMAGE}
WINDOW: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2]}


def _model(op_type: str, opset: int, outputs: Sequence[str] = ("y",), **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(op_type, ["x"], outputs, name="node", **attributes)
    element_types = dict(zip(outputs, (TensorProto.FLOAT, TensorProto.INT64), strict=False))
    return build([node], FEEDS, element_types, opset)


POOL_CASES: dict[str, tuple[Mapping[str, Any], Sequence[str]]] = {
    "plain window": (WINDOW, ["{op}"]),
    "dilations of 1": ({**WINDOW, "dilations": [1, 1]}, ["{op}"]),
    "ceil mode": ({**WINDOW, "ceil_mode": 1}, ["{op}"]),
    "ceil mode with padding": ({**WINDOW, "ceil_mode": 1, "pads": [1, 0, 0, 1]}, ["{op}"]),
    "ceil mode with SAME_UPPER": ({**WINDOW, "ceil_mode": 1, "auto_pad": "SAME_UPPER"}, ["{op}"]),
    "ceil mode with VALID": ({**WINDOW, "ceil_mode": 1, "auto_pad": "VALID"}, ["{op}"]),
    "last window in padding only": (
        {"kernel_shape": [1, 2], "strides": [1, 3], "pads": [0, 1, 0, 1], "ceil_mode": 1},
        ["{op}"],
    ),
    "dilated": ({**WINDOW, "dilations": [2, 1]}, []),
    "dilated with padding": ({**WINDOW, "dilations": [2, 3], "pads": [1, 2, 2, 1]}, []),
    "dilated with ceil mode": ({**WINDOW, "dilations": [2, 3], "ceil_mode": 1}, []),
}


@pytest.mark.parametrize("target", [18, 11, 9, 7])
@pytest.mark.parametrize(("attributes", "expected"), POOL_CASES.values(), ids=POOL_CASES)
@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool", "LpPool"])
def test_downgrades_pooling(
    op_type: str, attributes: Mapping[str, Any], expected: Sequence[str], target: int
) -> None:
    result = convert_and_check(_model(op_type, 22, **attributes), target, FEEDS)
    if expected:
        assert op_types(result) == [each.format(op=op_type) for each in expected]


@pytest.mark.parametrize("target", [18, 9, 7])
@pytest.mark.parametrize(("attributes", "expected"), POOL_CASES.values(), ids=POOL_CASES)
def test_downgrades_average_pool_that_counts_padding(
    attributes: Mapping[str, Any], expected: Sequence[str], target: int
) -> None:
    convert_and_check(_model("AveragePool", 22, count_include_pad=1, **attributes), target, FEEDS)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param({}, ["AveragePool"], id="no padding"),
        pytest.param({"pads": [1, 1, 0, 1]}, ["Pad", "AveragePool"], id="padding"),
        pytest.param({"auto_pad": "SAME_LOWER"}, ["Pad", "AveragePool"], id="automatic padding"),
        pytest.param(
            {"pads": [1, 1, 0, 1], "count_include_pad": 0}, ["AveragePool"], id="padding not counted"
        ),
    ],
)
def test_replaces_count_include_pad_at_average_pool_1(
    attributes: Mapping[str, Any], expected: Sequence[str]
) -> None:
    model = _model("AveragePool", 7, **{**WINDOW, "count_include_pad": 1, **attributes})
    result = convert_version(model, 6)
    assert op_types(result) == expected
    attribute_names = {each.name for each in result.graph.node[-1].attribute}
    assert attribute_names <= {"kernel_shape", "strides", "pads", "auto_pad"}
    if "Pad" in expected:
        assert attribute_names == {"kernel_shape", "strides"}


def test_average_pool_1_after_pad_returns_the_same_average() -> None:
    model = _model("AveragePool", 7, **WINDOW, count_include_pad=1, pads=[1, 1, 0, 1])
    older = convert_version(model, 6)
    convert_and_check(convert_version(older, 7), 8, FEEDS, [_expected_average()])


def _expected_average() -> Array:
    padded = np.pad(IMAGE, ((0, 0), (0, 0), (1, 0), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    return np.asarray(windows.mean((4, 5)), np.float32)


@pytest.mark.parametrize("op_type", ["LpPool", "GlobalLpPool"])
@pytest.mark.parametrize("exponent", [None, 3])
def test_converts_exponents_to_float_before_opset_2(op_type: str, exponent: int | None) -> None:
    attributes: dict[str, Any] = {"p": exponent} if exponent else {}
    window: dict[str, Any] = {"kernel_shape": [2, 2]} if op_type == "LpPool" else {}
    (node,) = convert_version(_model(op_type, 2, **attributes, **window), 1).graph.node
    (attribute,) = (each for each in node.attribute if each.name == "p")
    assert (attribute.type, attribute.f) == (AttributeProto.FLOAT, exponent or 2)


@pytest.mark.parametrize("target", [11, 9, 8])
def test_keeps_the_indices_of_max_pool(target: int) -> None:
    model = _model("MaxPool", 22, ["y", "i"], **WINDOW, ceil_mode=1, storage_order=1)
    convert_and_check(model, target, FEEDS)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_downgrades_max_pool_of_8_bit_integers(dtype: type) -> None:
    feeds: dict[str, Array] = {"x": (IMAGE * 40 + 60).astype(dtype)}
    node = helper.make_node("MaxPool", ["x"], ["y"], name="node", **WINDOW, pads=[1, 1, 1, 1])
    model = build([node], feeds, {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}, 12)
    convert_and_check(model, 8, feeds)


@pytest.mark.parametrize("target", [21, 11, 9, 8])
@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({"kernel_shape": [2], "dilations": [2], "strides": [4], "ceil_mode": 1}, id="ceil mode"),
        pytest.param(
            {"kernel_shape": [2], "strides": [5], "pads": [1, 1], "ceil_mode": 1}, id="ceil mode and padding"
        ),
        pytest.param({"kernel_shape": [2], "dilations": [3], "pads": [1, 1]}, id="dilated"),
    ],
)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_downgrades_dilated_max_pool_of_8_bit_integers(
    dtype: type, attributes: Mapping[str, Any], target: int
) -> None:
    """Padding is less than all numbers, including the smallest of the type."""
    limits = np.iinfo(dtype)
    feeds: dict[str, Array] = {"x": np.array([[[*[limits.min] * 5, limits.max, 0, 1, limits.min]]], dtype)}
    node = helper.make_node("MaxPool", ["x"], ["y"], name="node", **attributes)
    model = build([node], feeds, {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}, 22)
    convert_and_check(model, target, feeds)


def test_refuses_the_indices_of_dilated_max_pool() -> None:
    model = _model("MaxPool", 12, ["y", "i"], **WINDOW, dilations=[2, 2])
    assert (
        refusal_of(model, 9).reason == "output Indices is used, but dilated windows are rewritten without it"
    )


def test_refuses_the_indices_of_max_pool_before_opset_8() -> None:
    model = _model("MaxPool", 8, ["y", "i"], **WINDOW)
    assert refusal_of(model, 7).reason == "output Indices is used, but MaxPool-1 does not have it"


def test_refuses_windows_longer_than_the_data() -> None:
    model = _model("MaxPool", 10, kernel_shape=[2, 2], dilations=[40, 1])
    refused = refusal_of(model, 9)
    assert refused.reason.startswith("a window of 41 elements is longer than ")


@pytest.mark.parametrize("size", [4, 5, 6, 7, 8])
@pytest.mark.parametrize("target", [9, 7])
@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        pytest.param("MaxPool", WINDOW, id="MaxPool"),
        pytest.param("MaxPool", {**WINDOW, "pads": [1, 1, 1, 1]}, id="MaxPool with padding"),
        pytest.param(
            "MaxPool", {"kernel_shape": [2, 3], "strides": [2, 1]}, id="MaxPool with a rectangular window"
        ),
        pytest.param("AveragePool", {**WINDOW, "pads": [1, 1, 0, 0]}, id="AveragePool with padding"),
        pytest.param(
            "AveragePool", {"kernel_shape": [3, 3], "count_include_pad": 1}, id="AveragePool with stride 1"
        ),
        pytest.param("LpPool", WINDOW, id="LpPool"),
    ],
)
def test_rewrites_ceil_mode_for_unknown_sizes(
    op_type: str, attributes: Mapping[str, Any], target: int, size: int
) -> None:
    node = helper.make_node(op_type, ["x"], ["y"], name="node", ceil_mode=1, **attributes)
    feeds = {"x": IMAGE[:, :, :size, :size]}
    model = build([node], feeds, ["y"], 18 if op_type == "LpPool" else 11, shapes=False)
    assert op_types(convert_and_check(model, target, feeds)) == [op_type]


def test_refuses_unknown_sizes_if_a_window_may_start_in_padding() -> None:
    """The last window might start after the end of the data, in padding only."""
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[3, 3], ceil_mode=1)
    model = build([node], FEEDS, ["y"], 10, shapes=False)
    assert refusal_of(model, 9).reason == "the windows depend on the spatial size of 'x', which is unknown"


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        pytest.param(
            {**WINDOW, "dilations": [2, 2], "auto_pad": "SAME_UPPER"},
            "onnxruntime pads dilated windows of SAME_UPPER like windows without dilation",
            id="dilated and SAME",
        ),
        pytest.param(
            {"kernel_shape": [1, 2], "strides": [4, 1], "auto_pad": "SAME_LOWER", "dilations": [2, 1]},
            "onnxruntime centres SAME windows that do not reach the end of the data",
            id="SAME windows with gaps",
        ),
    ],
)
def test_refuses_padding_on_which_runtimes_differ(attributes: Mapping[str, Any], reason: str) -> None:
    assert refusal_of(_model("AveragePool", 19, **attributes), 18).reason.startswith(reason)


@pytest.mark.parametrize("target", [9, 8, 7])
@pytest.mark.parametrize("shape", [(2, 3, 11, 13), (0, 3, 11, 13), (1, 1, 11, 13)])
@pytest.mark.parametrize("unknown", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [3, 2], "dilations": [2, 5], "strides": [3, 1]},
        {"kernel_shape": [2, 4], "dilations": [7, 1], "strides": [2, 3], "pads": [1, 0, 1, 2]},
        {"kernel_shape": [1, 3], "dilations": [4, 6], "strides": [5, 5], "pads": [0, 2, 0, 1]},
    ],
)
@pytest.mark.parametrize(
    ("op_type", "opset", "more"),
    [
        pytest.param("MaxPool", 12, {}, id="MaxPool"),
        pytest.param("LpPool", 18, {}, id="LpPool"),
        pytest.param("LpPool", 18, {"p": 3}, id="LpPool with exponent 3"),
        pytest.param("AveragePool", 19, {}, id="AveragePool"),
        pytest.param("AveragePool", 19, {"count_include_pad": 1}, id="AveragePool that counts padding"),
    ],
)
def test_dilated_windows_add_few_nodes_and_no_tables(
    op_type: str,
    opset: int,
    more: Mapping[str, int],
    attributes: Mapping[str, Any],
    unknown: Sequence[int],
    shape: tuple[int, ...],
    target: int,
) -> None:
    data = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    node = helper.make_node(op_type, ["x"], ["y"], **attributes, **more)
    model = build([node], {"x": data}, ["y"], opset)
    for axis in unknown:
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"n{axis}"
    expected = None
    if not shape[0]:
        feeds = {"x": np.zeros((1, *shape[1:]), np.float32)}
        nonempty = build([node], feeds, ["y"], opset)
        sizes = run(nonempty, feeds)[0].shape[1:]
        expected = [np.zeros((0, *sizes), np.float32)]
    result = convert_and_check(model, target, {"x": data}, expected)
    assert len(result.graph.node) < 30
    assert sum(len(each.raw_data) for each in result.graph.initializer) < 500


@pytest.mark.parametrize(("op_type", "opset"), [("MaxPool", 12), ("LpPool", 18), ("AveragePool", 19)])
def test_window_of_200_elements_adds_few_nodes(op_type: str, opset: int) -> None:
    data = np.random.default_rng(1).standard_normal((1, 1, 5000)).astype(np.float32)
    attributes = {"kernel_shape": [200], "dilations": [10], "strides": [10], "pads": [100, 100]}
    model = build([helper.make_node(op_type, ["x"], ["y"], **attributes)], {"x": data}, ["y"], opset)
    assert len(convert_and_check(model, 9, {"x": data}).graph.node) < 10


@pytest.mark.parametrize("data", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(("op_type", "opset"), [("LpPool", 18), ("AveragePool", 19)])
def test_dilated_windows_do_not_spread_special_values(op_type: str, opset: int, data: float) -> None:
    feeds = {"x": IMAGE.copy()}
    feeds["x"][0, 0, 3, 4] = data
    node = helper.make_node(op_type, ["x"], ["y"], kernel_shape=[2, 2], dilations=[2, 3], pads=[1, 1, 1, 1])
    convert_and_check(build([node], feeds, ["y"], opset), 9, feeds)


def test_dilated_norm_of_single_elements_is_their_magnitude() -> None:
    node = helper.make_node("LpPool", ["x"], ["y"], kernel_shape=[1, 1], dilations=[2, 2])
    convert_and_check(build([node], FEEDS, ["y"], 18), 9, FEEDS, [np.abs(IMAGE)])
