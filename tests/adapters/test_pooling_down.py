"""Pooling on its way down: rounding up becomes padding, dilated windows are gathered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper
from support.running import Array, build, op_types

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
IMAGE = np.random.default_rng(0).standard_normal((2, 3, 7, 10)).astype(np.float32)
FEEDS = {"x": IMAGE}
WINDOW: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2]}


def _model(op: str, opset: int, outputs: Sequence[str] = ("y",), **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(op, ["x"], outputs, name="node", **attributes)
    kinds = dict(zip(outputs, (TensorProto.FLOAT, TensorProto.INT64), strict=False))
    return build([node], FEEDS, kinds, opset)


WAYS: dict[str, tuple[Mapping[str, Any], Sequence[str]]] = {
    "a plain window": (WINDOW, ["{op}"]),
    "dilations of 1": ({**WINDOW, "dilations": [1, 1]}, ["{op}"]),
    "rounded up": ({**WINDOW, "ceil_mode": 1}, ["{op}"]),
    "rounded up, with padding": ({**WINDOW, "ceil_mode": 1, "pads": [1, 0, 0, 1]}, ["{op}"]),
    "rounded up, SAME": ({**WINDOW, "ceil_mode": 1, "auto_pad": "SAME_UPPER"}, ["{op}"]),
    "rounded up, VALID": ({**WINDOW, "ceil_mode": 1, "auto_pad": "VALID"}, ["{op}"]),
    "a last window of padding alone": (
        {"kernel_shape": [1, 2], "strides": [1, 3], "pads": [0, 1, 0, 1], "ceil_mode": 1},
        ["{op}"],
    ),
    "dilated": ({**WINDOW, "dilations": [2, 1]}, []),
    "dilated, with padding": ({**WINDOW, "dilations": [2, 3], "pads": [1, 2, 2, 1]}, []),
    "dilated, rounded up": ({**WINDOW, "dilations": [2, 3], "ceil_mode": 1}, []),
}


@pytest.mark.parametrize("target", [18, 11, 9, 7])
@pytest.mark.parametrize(("attributes", "expected"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("op", ["AveragePool", "MaxPool", "LpPool"])
def test_windows(
    op: str, attributes: Mapping[str, Any], expected: Sequence[str], target: int, converted: Converted
) -> None:
    result = converted(_model(op, 22, **attributes), target, FEEDS)
    if expected:
        assert op_types(result) == [each.format(op=op) for each in expected]


@pytest.mark.parametrize("target", [18, 9, 7])
@pytest.mark.parametrize(("attributes", "expected"), WAYS.values(), ids=WAYS)
def test_averages_that_count_padding(
    attributes: Mapping[str, Any], expected: Sequence[str], target: int, converted: Converted
) -> None:
    converted(_model("AveragePool", 22, count_include_pad=1, **attributes), target, FEEDS)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param({}, ["AveragePool"], id="no padding"),
        pytest.param({"pads": [1, 1, 0, 1]}, ["Pad", "AveragePool"], id="padding"),
        pytest.param(
            {"auto_pad": "SAME_LOWER"}, ["Pad", "AveragePool"], id="padding that follows from the size"
        ),
        pytest.param(
            {"pads": [1, 1, 0, 1], "count_include_pad": 0}, ["AveragePool"], id="padding not counted"
        ),
    ],
)
def test_version_1_counts_no_padding(attributes: Mapping[str, Any], expected: Sequence[str]) -> None:
    model = _model("AveragePool", 7, **{**WINDOW, "count_include_pad": 1, **attributes})
    result = convert_version(model, 6)
    assert op_types(result) == expected
    stated = {each.name for each in result.graph.node[-1].attribute}
    assert stated <= {"kernel_shape", "strides", "pads", "auto_pad"}
    if "Pad" in expected:
        assert stated == {"kernel_shape", "strides"}


def test_version_1_after_padding_gives_the_same_average(converted: Converted) -> None:
    model = _model("AveragePool", 7, **WINDOW, count_include_pad=1, pads=[1, 1, 0, 1])
    below = convert_version(model, 6)
    converted(convert_version(below, 7), 8, FEEDS, [_average()])


def _average() -> Array:
    padded = np.pad(IMAGE, ((0, 0), (0, 0), (1, 0), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    return np.asarray(windows.mean((4, 5)), np.float32)


@pytest.mark.parametrize("op", ["LpPool", "GlobalLpPool"])
@pytest.mark.parametrize("exponent", [None, 3])
def test_exponents_are_floats_before_2(op: str, exponent: int | None) -> None:
    stated: dict[str, Any] = {"p": exponent} if exponent else {}
    window: dict[str, Any] = {"kernel_shape": [2, 2]} if op == "LpPool" else {}
    (node,) = convert_version(_model(op, 2, **stated, **window), 1).graph.node
    (found,) = (each for each in node.attribute if each.name == "p")
    assert (found.type, found.f) == (AttributeProto.FLOAT, exponent or 2)


@pytest.mark.parametrize("target", [11, 9, 8])
def test_indices_are_kept(target: int, converted: Converted) -> None:
    model = _model("MaxPool", 22, ["y", "i"], **WINDOW, ceil_mode=1, storage_order=1)
    converted(model, target, FEEDS)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_maxima_of_bytes(kind: type, converted: Converted) -> None:
    data: dict[str, Array] = {"x": (IMAGE * 40 + 60).astype(kind)}
    node = helper.make_node("MaxPool", ["x"], ["y"], name="node", **WINDOW, pads=[1, 1, 1, 1])
    model = build([node], data, {"y": helper.np_dtype_to_tensor_dtype(np.dtype(kind))}, 12)
    converted(model, 8, data)


def test_indices_of_dilated_windows_are_refused(refusal: Refusing) -> None:
    model = _model("MaxPool", 12, ["y", "i"], **WINDOW, dilations=[2, 2])
    assert refusal(model, 9).reason == "output Indices is used, but dilated windows are rewritten without it"


def test_indices_are_refused_before_8(refusal: Refusing) -> None:
    model = _model("MaxPool", 8, ["y", "i"], **WINDOW)
    assert refusal(model, 7).reason == "output Indices is used, but MaxPool-1 does not have it"


def test_a_window_that_is_longer_than_the_data_is_refused(refusal: Refusing) -> None:
    model = _model("MaxPool", 10, kernel_shape=[2, 2], dilations=[40, 1])
    found = refusal(model, 9)
    assert found.reason.startswith("a window of 41 elements is longer than ")


@pytest.mark.parametrize("size", [4, 5, 6, 7, 8])
@pytest.mark.parametrize("target", [9, 7])
@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        pytest.param("MaxPool", WINDOW, id="maxima"),
        pytest.param("MaxPool", {**WINDOW, "pads": [1, 1, 1, 1]}, id="maxima with padding"),
        pytest.param("MaxPool", {"kernel_shape": [2, 3], "strides": [2, 1]}, id="other sides"),
        pytest.param("AveragePool", {**WINDOW, "pads": [1, 1, 0, 0]}, id="averages"),
        pytest.param("AveragePool", {"kernel_shape": [3, 3], "count_include_pad": 1}, id="a stride of 1"),
        pytest.param("LpPool", WINDOW, id="norms"),
    ],
)
def test_rounding_up_of_an_unknown_size(
    op: str, attributes: Mapping[str, Any], target: int, size: int, converted: Converted
) -> None:
    node = helper.make_node(op, ["x"], ["y"], name="node", ceil_mode=1, **attributes)
    feeds = {"x": IMAGE[:, :, :size, :size]}
    model = build([node], feeds, ["y"], 18 if op == "LpPool" else 11, shapes=False)
    assert op_types(converted(model, target, feeds)) == [op]


def test_an_unknown_size_is_refused_where_it_matters(refusal: Refusing) -> None:
    """The last window might begin behind the data, in padding alone."""
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[3, 3], ceil_mode=1)
    model = build([node], FEEDS, ["y"], 10, shapes=False)
    assert refusal(model, 9).reason == "the windows depend on the spatial size of 'x', which is unknown"


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
def test_padding_that_runtimes_differ_on_is_refused(
    attributes: Mapping[str, Any], reason: str, refusal: Refusing
) -> None:
    assert refusal(_model("AveragePool", 19, **attributes), 18).reason == reason
