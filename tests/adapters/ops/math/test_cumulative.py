"""Downgrades of CumSum, CumProd, Einsum, DFT, STFT and MelWeightMatrix below their first opset."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.running import Array, build

RANDOM = np.random.default_rng(0)


def _random(*shape: int, dtype: type = np.float32) -> Array:
    return RANDOM.standard_normal(shape).astype(dtype)


def _expected_totals(data: Array, axis: int, op_type: str, exclusive: int, reverse: int) -> Array:
    data = np.moveaxis(data, axis, 0)[:: -1 if reverse else 1]
    function = np.cumsum if op_type == "CumSum" else np.cumprod
    totals = function(data, 0, dtype=data.dtype)
    if exclusive:
        totals = np.concatenate([np.full_like(totals[:1], op_type == "CumProd"), totals[:-1]])
    return np.moveaxis(totals[:: -1 if reverse else 1], 0, axis)


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    ("op_type", "opset", "target"), [("CumSum", 11, 7), ("CumSum", 14, 10), ("CumProd", 26, 8)]
)
def test_expands_cumulative_operators(
    op_type: str, opset: int, target: int, axis: int, exclusive: int, reverse: int
) -> None:
    """Infinity and NaN propagate to later positions only."""
    data: Array = _random(3, 7, 2)
    data[1, 3, 0], data[2, 5, 1] = math.inf, math.nan
    node = helper.make_node(op_type, ["x", "a"], ["y"], name="node", exclusive=exclusive, reverse=reverse)
    model = build([node], {"x": data}, ["y"], opset, initializers={"a": np.array(axis, np.int64)})
    convert_and_check(model, target, {"x": data}, [_expected_totals(data, axis, op_type, exclusive, reverse)])


@pytest.mark.parametrize("axis", [1, -2])
def test_expands_cum_sum_along_a_computed_axis(axis: int) -> None:
    feeds: dict[str, Array] = {"x": RANDOM.integers(-9, 9, (4, 5)), "a": np.array(axis, np.int32)}
    node = helper.make_node("CumSum", ["x", "a"], ["y"], name="node")
    model = build([node], feeds, {"y": onnx.TensorProto.INT64}, 11)
    convert_and_check(model, 7, feeds, [np.cumsum(feeds["x"], axis)])


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize(
    ("axis", "shape"), [(0, (5,)), (0, (5, 2)), (1, (2, 5, 3)), (-1, (2, 3, 4)), (1, (2, 1))]
)
@pytest.mark.parametrize(
    ("op_type", "opset", "target"), [("CumSum", 11, 7), ("CumSum", 14, 9), ("CumProd", 26, 25)]
)
def test_expands_cumulative_operators_of_unknown_sizes(
    op_type: str, opset: int, target: int, axis: int, shape: tuple[int, ...], exclusive: int, reverse: int
) -> None:
    data: Array = RANDOM.integers(-9, 9, shape)
    node = helper.make_node(op_type, ["x", "a"], ["y"], name="node", exclusive=exclusive, reverse=reverse)
    model = build(
        [node],
        {"x": data},
        {"y": onnx.TensorProto.INT64},
        opset,
        initializers={"a": np.array(axis, np.int64)},
    )
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.Clear()
    convert_and_check(model, target, {"x": data}, [_expected_totals(data, axis, op_type, exclusive, reverse)])


EQUATIONS = [
    pytest.param("ij,jk->ik", [(2, 3), (3, 4)], id="matrix product"),
    pytest.param("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)], id="batch matrix product"),
    pytest.param("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)], id="attention"),
    pytest.param("bqhd,bkhd->bhqk", [(2, 4, 3, 5), (2, 6, 3, 5)], id="attention with an inner heads axis"),
    pytest.param("abc,cda->bd", [(2, 3, 4), (4, 5, 2)], id="two labels summed"),
    pytest.param("abcd,efcd->feba", [(2, 3, 4, 5), (6, 2, 4, 5)], id="several labels of each role"),
    pytest.param("i,j->ij", [(2,), (3,)], id="outer product"),
    pytest.param("i,i", [(3,), (3,)], id="inner product, implicit output"),
    pytest.param("ij,ij->ij", [(2, 3), (2, 3)], id="elementwise product"),
    pytest.param("ij->ji", [(2, 3)], id="transposed"),
    pytest.param("ba", [(2, 3)], id="implicit output in alphabetical order"),
    pytest.param("ij->", [(2, 3)], id="all summed"),
    pytest.param("ij->i", [(2, 3)], id="one label summed"),
    pytest.param("ii->i", [(3, 3)], id="the diagonal"),
    pytest.param("ii", [(3, 3)], id="the trace"),
    pytest.param("iji->j", [(3, 2, 3)], id="diagonal around another label"),
    pytest.param("iii->i", [(3, 3, 3)], id="the diagonal of a cube"),
    pytest.param("...ii->...i", [(2, 4, 3, 3)], id="the diagonals of a batch"),
    pytest.param("...ij,...jk->...ik", [(4, 1, 2, 3), (5, 3, 2)], id="broadcast batches"),
    pytest.param("i...,j...->...ij", [(2, 3), (4, 3)], id="an ellipsis at the end"),
    pytest.param("...i,...i->...", [(2, 3), (3,)], id="empty ellipsis"),
    pytest.param("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], id="three operands"),
    pytest.param("i,ij,j", [(2,), (2, 3), (3,)], id="a bilinear form"),
    pytest.param("ab,b,cb->ac", [(2, 3), (3,), (4, 3)], id="label in three operands"),
    pytest.param("ij,k->j", [(2, 3), (4,)], id="labels summed before the product"),
    pytest.param(" i j , j k -> i k ", [(2, 3), (3, 2)], id="blanks"),
]


@pytest.mark.parametrize("target", [7, 11])
@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_expands_einsum(equation: str, shapes: list[tuple[int, ...]], target: int) -> None:
    feeds: dict[str, Array] = {f"x{index}": _random(*shape) for index, shape in enumerate(shapes)}
    node = helper.make_node("Einsum", list(feeds), ["y"], name="node", equation=equation)
    expected = [np.einsum(equation.replace(" ", ""), *feeds.values())]
    convert_and_check(build([node], feeds, ["y"], 12), target, feeds, expected)


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_expands_einsum_of_unknown_sizes(equation: str, shapes: list[tuple[int, ...]]) -> None:
    feeds: dict[str, Array] = {f"x{index}": _random(*shape) for index, shape in enumerate(shapes)}
    node = helper.make_node("Einsum", list(feeds), ["y"], name="node", equation=equation)
    model = build([node], feeds, ["y"], 12)
    for value in model.graph.input:
        for index, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{index}"
    if "ii" in equation or "iji" in equation:
        assert refusal_of(model, 11).reason.endswith("is repeated, and the size of its dimensions is unknown")
        return
    convert_and_check(model, 9, feeds, [np.einsum(equation.replace(" ", ""), *feeds.values())])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS[:5])
def test_expands_einsum_of_other_types(equation: str, shapes: list[tuple[int, ...]], dtype: type) -> None:
    feeds: dict[str, Array] = {
        f"x{index}": RANDOM.integers(-9, 9, shape).astype(dtype) for index, shape in enumerate(shapes)
    }
    node = helper.make_node("Einsum", list(feeds), ["y"], name="node", equation=equation)
    outputs = {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}
    convert_and_check(build([node], feeds, outputs, 12), 7, feeds, [np.einsum(equation, *feeds.values())])


def _expected_dft(data: Array, length: int | None, axis: int, inverse: int, onesided: int) -> Array:
    signal = data[..., 0] + (1j * data[..., 1] if data.shape[-1] == 2 else 0)
    if inverse and onesided:
        return np.fft.irfft(signal, length, axis)[..., None].astype(data.dtype)
    spectrum = np.asarray((np.fft.ifft if inverse else np.fft.fft)(signal, length, axis))
    if onesided:
        spectrum = np.take(spectrum, np.arange(spectrum.shape[axis] // 2 + 1), axis)
    return np.stack([spectrum.real, spectrum.imag], -1).astype(data.dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [None, 4, 5, 9])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(
    ("components", "inverse", "onesided"),
    [
        pytest.param(1, 0, 0, id="real"),
        pytest.param(2, 0, 0, id="complex"),
        pytest.param(1, 0, 1, id="onesided"),
        pytest.param(2, 1, 0, id="inverse, complex"),
        pytest.param(1, 1, 0, id="inverse of real"),
        pytest.param(2, 1, 1, id="inverse to real"),
    ],
)
def test_expands_dft(
    components: int, inverse: int, onesided: int, axis: int, length: int | None, dtype: type
) -> None:
    data: Array = _random(6, 7, 8, components, dtype=dtype)
    initializers: dict[str, Any] = {} if length is None else {"n": np.array(length, np.int64)}
    attributes = {"axis": axis, "inverse": inverse, "onesided": onesided}
    node = helper.make_node("DFT", ["x", *initializers], ["y"], name="node", **attributes)
    outputs = {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}
    model = build([node], {"x": data}, outputs, 17, initializers=initializers)
    convert_and_check(model, 9, {"x": data}, [_expected_dft(data, length, axis, inverse, onesided)])


@pytest.mark.parametrize(
    ("window", "length", "onesided"),
    [
        pytest.param(8, 8, 1, id="window and length"),
        pytest.param(8, None, 0, id="window only, twosided"),
        pytest.param(None, 6, 1, id="length only"),
    ],
)
@pytest.mark.parametrize("constant", [True, False], ids=["constant step", "computed step"])
def test_expands_stft(constant: bool, window: int | None, length: int | None, onesided: int) -> None:
    data: Array = _random(2, 33, 1)
    frame_step: dict[str, Array] = {"s": np.array(3, np.int64)}
    initializers: dict[str, Array] = dict(frame_step) if constant else {}
    feeds: dict[str, Array] = {"x": data} | ({} if constant else frame_step)
    initializers |= {"w": np.hanning(window).astype(np.float32)} if window else {}
    initializers |= {"n": np.array(length, np.int64)} if length else {}
    names = ["x", "s", "w" if window else "", "n" if length else ""]
    node = helper.make_node("STFT", names, ["y"], name="node", onesided=onesided)
    model = build([node], feeds, ["y"], 17, initializers=initializers)
    for target in (13, 8):
        convert_and_check(model, target, feeds)


@pytest.mark.parametrize(
    "shape", [(2, 33), (2, 33, 1)], ids=["without a last dimension", "with a last dimension"]
)
@pytest.mark.parametrize("constant", [True, False], ids=["constant step", "computed step"])
def test_expands_stft_of_unknown_length(shape: tuple[int, ...], constant: bool) -> None:
    feeds: dict[str, Array] = {"x": _random(*shape)}
    initializers: dict[str, Array] = {"w": np.hanning(8).astype(np.float32), "n": np.array(8, np.int64)}
    (initializers if constant else feeds)["s"] = np.array(3, np.int64)
    node = helper.make_node("STFT", ["x", "s", "w", "n"], ["y"], name="node")
    model = build([node], feeds, ["y"], 17, initializers=initializers)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "length"
    for target in (13, 8):
        convert_and_check(model, target, feeds)


@pytest.mark.parametrize("edges", [(0.0, 4000.0), (125.0, 7600.0)])
def test_downgrades_mel_weight_matrix(edges: tuple[float, float]) -> None:
    initializers: dict[str, Array] = {
        "b": np.array(8, np.int64),
        "n": np.array(64, np.int64),
        "r": np.array(16000, np.int64),
    }
    initializers |= {name: np.array(edge, np.float32) for name, edge in zip("lu", edges, strict=True)}
    node = helper.make_node("MelWeightMatrix", list(initializers), ["y"], name="node")
    model = build([node], {}, ["y"], 17, initializers=initializers)
    convert_and_check(model, 9, {})
