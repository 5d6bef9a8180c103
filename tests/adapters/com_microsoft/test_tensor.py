"""Operators of com.microsoft on the shape and order of elements equal standard operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.com_microsoft import assert_replaced, case, model_of, without_microsoft
from support.forms import FORMS, RANKED_FORMS

from opshift import ConversionRefused

f, i64 = np.float32, np.int64
X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(f)
IMAGE = X[None]
GRID = np.random.default_rng(1).uniform(-1.3, 1.3, (1, 6, 7, 2)).astype(f)

CASES = {
    "Trilu": case("Trilu", X),
    "Trilu lower": case("Trilu", X.astype(np.float64), i64(1), upper=0),
    "Trilu integers": case("Trilu", np.arange(12).reshape(3, 4), i64(-1)),
    "ExpandDims": case("ExpandDims", X, np.int32(1)),
    "ExpandDims first": case("ExpandDims", X, np.int32(0)),
    "ExpandDims last": case("ExpandDims", X.astype(np.int8), np.int32(-1)),
    "ExpandDims negative": case("ExpandDims", X.astype(np.float16), np.int32(-3)),
    "Pad": case("Pad", X, np.array([0, 1, 2, 1, 0, 3]), f(7)),
    "Pad matrix": case("Pad", X, np.array([[0, 1, 2, 1, 0, 3]]), np.array([7], f)),
    "Pad default": case("Pad", X, np.array([0, 1, -2, 1, 0, 3])),
    "Pad edge": case("Pad", X, np.array([0, 1, 2, 1, 0, 3]), mode="edge"),
    "Pad reflect": case("Pad", X, np.array([0, 1, 2, 1, 0, 3]), mode="reflect"),
    "Unique": case("Unique", np.array([2, 1, 1, 3, 4, 3], f), outputs=[f, i64, i64]),
    "Range": case("Range", i64(3), i64(20), i64(4)),
    "Range default": case("Range", f(1.5), f(5)),
    "Range lists": case("Range", np.array([9], np.int32), np.array([2], np.int32), np.array([-2], np.int32)),
    "Range short": case("Range", np.int16(1), np.int16(8), np.int16(3)),
    "Range double": case("Range", 0.5, 9.25, 0.75),
}
RANKED = {"Trilu", "Trilu lower", "Trilu integers"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CASES)
def test_equals_the_kernel(name: str, form: str) -> None:
    if name.startswith("Pad re") and form == "branch":
        pytest.skip("onnxruntime is tested with the other modes")
    for opset in (13, 17, 22):
        if form != "no shapes" or opset > 13 or name not in RANKED:
            assert_replaced(CASES[name], form, opset)


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_equals_the_kernel(mode: str, padding: str, form: str) -> None:
    for align in (0, 1):
        given = case("GridSample", IMAGE, GRID, mode=mode, padding_mode=padding, align_corners=align)
        assert_replaced(given, form, 17)
        assert_replaced(given, form, 20)


def test_embedding_copies_rows() -> None:
    weight, indices = X[0], np.array([[1, 3], [0, 2]])
    assert_replaced(case("TorchEmbedding", weight, indices, i64(1)), expected=[weight[indices]])


def test_rfft_equals_numpy() -> None:
    signals = X[..., :4]
    found = np.fft.rfft(signals)
    expected = np.stack([found.real, found.imag], axis=-1).astype(f)
    for opset in (17, 20):
        assert_replaced(case("Rfft", signals), opset=opset, expected=[expected])


@pytest.mark.parametrize(
    ("op", "attributes", "reason"),
    [
        ("Rfft", {"signal_ndim": 2}, "signal_ndim is 2, and kernels support only 1"),
        ("Irfft", {"signal_ndim": 1}, "no runtime with a kernel confirms"),
        ("Inverse", {}, "standard operators cannot invert matrices"),
    ],
)
def test_refusals(op: str, attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConversionRefused) as caught:
        without_microsoft(model_of(case(op, X, **attributes))[0], 17)
    (refusal,) = caught.value.refusals
    assert reason in refusal.reason


BOXES = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [0.8, 0.6, 0.2, 0.1], [-0.3, 0.4, 1.4, 0.8]], f)
BATCH, IMAGES = np.array([0, 1, 1, 0], np.int32), np.random.default_rng(3).normal(size=(2, 3, 5, 6)).astype(f)


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_crop_and_resize_equals_the_kernel(mode: str, form: str) -> None:
    for height, width in ((4, 7), (1, 3), (2, 1)):
        size = np.array([height, width], np.int32)
        for opset in (16, 20):
            given = case("CropAndResize", IMAGES, BOXES, BATCH, size, mode=mode, extrapolation_value=-2.5)
            assert_replaced(given, form, opset)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_crop_of_pixels_that_are_not_finite(mode: str) -> None:
    """Points on pixels have their values; points next to infinite pixels are NaN, as in the kernel."""
    boxes = np.concatenate([[[0, 0, 1, 1], [0.25, 0.4, 0.75, 0.8]], BOXES]).astype(f)
    for size in ((5, 6), (4, 7)):
        given = case(
            "CropAndResize", SPECIAL, boxes, np.zeros(6, np.int32), np.array(size, np.int32), mode=mode
        )
        for target in (17, 12):
            assert_replaced(given, "fed", target)


SPECIAL = IMAGES.copy()
SPECIAL[0, 0, 1, 1], SPECIAL[0, 1, 2, 3], SPECIAL[0, 2, 4, 5], SPECIAL[0, 2, 0, 0] = (
    np.inf,
    np.nan,
    -np.inf,
    1e30,
)
