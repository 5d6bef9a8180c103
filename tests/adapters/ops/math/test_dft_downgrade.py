"""Expansion of DFT and STFT below opset 17."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, build

RANDOM = np.random.default_rng(0)


def _random(*shape: int, dtype: type = np.float32) -> Array:
    return RANDOM.standard_normal(shape).astype(dtype)


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
