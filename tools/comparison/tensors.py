"""Generators of nodes that select, move or generate elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from comparison.sampler import FLOATS, Array, Sample, Sampler, generates

f32, i32, i64 = np.float32, np.int32, np.int64


def _data(draw: Sampler, shape: tuple[int, ...]) -> Array:
    """Draw numbers of a random type."""
    kind = draw.pick([f32, np.float64, i64, i32])
    return draw.floats(shape, kind) if kind in (f32, np.float64) else draw.integers(shape, kind, -9, 9)


@generates("ExpandDims")
def expand_dims(draw: Sampler, op_type: str) -> Sample:
    """Generate the insertion of an axis."""
    data = _data(draw, draw.shape(0, 3))
    axis = np.array(draw.integer(-data.ndim - 1, data.ndim), i32)
    return Sample(op_type, [data, axis], [data.dtype], {})


@generates("Pad")
def pad(draw: Sampler, op_type: str) -> Sample:
    """Generate padding, with the pads as an input."""
    dtype = FLOATS[draw.pick(["float", "double"])]
    mode = draw.pick([None, "constant", "edge", "reflect"])
    shape = draw.shape(1, 3)
    low, high = (-1, 2) if mode in (None, "constant", "edge") else (0, max(0, min([*shape, 2]) - 1))
    low = low if all(size > 2 for size in shape) else 0
    pads = draw.integers((2 * len(shape),), i64, low, high)
    pads = pads if draw.maybe(0.8) else pads.reshape(1, -1)
    value = draw.floats(draw.pick([(), (1,)]), dtype) if draw.maybe() else None
    return Sample(op_type, [draw.floats(shape, dtype), pads, value], [dtype], {"mode": mode} if mode else {})


@generates("Range")
def number_range(draw: Sampler, op_type: str) -> Sample:
    """Generate a range of numbers with a step."""
    kind = draw.pick([f32, np.float64, i64, i32, np.int16])
    size = draw.pick([(), (1,)])
    start, limit, step = draw.integer(-5, 5), draw.integer(-5, 8), draw.pick([1, 2, -1, -2, 3])
    numbers = [np.full(size, each, kind) for each in (start, limit, step)]
    return Sample(op_type, numbers if draw.maybe(0.7) else [*numbers[:2]], [kind], {})


@generates("Rfft")
def transform(draw: Sampler, op_type: str) -> Sample:
    """Generate a Fourier transform."""
    return Sample(
        op_type,
        [draw.floats((*draw.shape(1, 2), draw.integer(2, 8)))],
        [f32],
        {"signal_ndim": 1, "normalized": 0, "onesided": 1},
    )


@generates("GatherND")
def gather(draw: Sampler, op_type: str) -> Sample:
    """Generate a selection of elements at indices."""
    data = _data(draw, tuple(draw.integer(1, 4) for _ in range(draw.integer(1, 3))))
    depth = draw.integer(1, data.ndim)
    shape = (*draw.shape(0, 2), depth)
    kind = draw.pick([i32, i64])
    indices = np.stack([draw.integers(shape[:-1], kind, -size, size - 1) for size in data.shape[:depth]], -1)
    return Sample(op_type, [data, indices], [data.dtype], {})


@generates("GridSample")
def grid_sample(draw: Sampler, op_type: str) -> Sample:
    """Generate samples of images at grid points."""
    batch = draw.size(1, 2)
    attributes = draw.flags("align_corners")
    attributes |= draw.some(mode=draw.pick(["bilinear", "nearest", "bicubic"]))
    attributes |= draw.some(padding_mode=draw.pick(["zeros", "border", "reflection"]))
    data = draw.floats((batch, draw.integer(1, 2), draw.integer(2, 4), draw.integer(2, 4)))
    grid = draw.normal((batch, draw.size(1, 3), draw.size(1, 3), 2))
    return Sample(op_type, [data, grid], [f32], attributes)


@generates("CropAndResize")
def crop(draw: Sampler, op_type: str) -> Sample:
    """Generate crops of images to boxes."""
    batch, count = draw.integer(1, 2), draw.size(1, 3)
    attributes: dict[str, Any] = draw.some(extrapolation_value=2.5, mode=draw.pick(["bilinear", "nearest"]))
    boxes = draw.random.uniform(-0.2, 1.2, (count, 4)).astype(f32)
    inputs = [
        draw.floats((batch, draw.integer(1, 2), draw.integer(1, 4), draw.integer(1, 4))), boxes,
        draw.integers((count,), i32, 0, batch - 1), draw.integers((2,), i32, 1, 4),
    ]  # fmt: skip
    return Sample(op_type, inputs, [f32], attributes)


@generates("TorchEmbedding")
def rows(draw: Sampler, op_type: str) -> Sample:
    """Generate a selection of rows of a table."""
    inputs: list[Array | None] = [draw.floats((4, draw.size())), draw.integers(draw.shape(0, 2), i64, 0, 3)]
    inputs += [
        np.array(draw.integer(-1, 3)) if draw.maybe() else None,
        np.array(draw.maybe()) if draw.maybe() else None,
    ]
    return Sample(op_type, inputs, [f32], {})


@generates("Trilu")
def triangle(draw: Sampler, op_type: str) -> Sample:
    """Generate triangles of matrices."""
    kind = draw.pick([f32, np.float64, i64])
    shape = (*draw.shape(0, 1), draw.size(), draw.size())
    data = draw.integers(shape, i64) if kind is i64 else draw.floats(shape, kind)
    inputs = [data, np.array(draw.integer(-3, 3)) if draw.maybe() else None]
    return Sample(op_type, inputs, [kind], draw.flags("upper"))


@generates("Unique")
def unique(draw: Sampler, op_type: str) -> Sample:
    """Generate a list of distinct elements."""
    data = draw.integers((draw.size(1, 6),), i64, 0, 3).astype(f32)
    if draw.is_special:
        data[data == 0] = np.nan
    return Sample(op_type, [data], [f32, i64, i64], {})


@generates("NGramRepeatBlock")
def repeats(draw: Sampler, op_type: str) -> Sample:
    """Generate scores of tokens, and the tokens so far."""
    batch, vocabulary = draw.size(1, 3), draw.integer(2, 5)
    ids = draw.integers((batch, draw.size(1, 7)), i64, 0, vocabulary - 1)
    return Sample(op_type, [ids, draw.floats((batch, vocabulary))], [f32], {"ngram_size": draw.integer(1, 4)})
