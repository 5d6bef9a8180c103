"""Pooling as it is defined, for images of two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from support.running import Array

Sizes = Sequence[int] | None


def _windows(x: Array, kernel_shape: Sequence[int], strides: Sizes, pads: Sizes, auto_pad: str) -> Array:
    """The elements under each place of the kernel, along two more axes."""
    assert auto_pad == "NOTSET"
    top, left, bottom, right = pads or (0, 0, 0, 0)
    down, across = strides or (1, 1)
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    return np.asarray(sliding_window_view(padded, kernel_shape, (2, 3))[:, :, ::down, ::across])


def average(x: Array, *, kernel_shape: Sequence[int], strides: Sizes, pads: Sizes, auto_pad: str) -> Array:
    """What is padded does not count."""
    sums = _windows(x, kernel_shape, strides, pads, auto_pad).sum((-1, -2))
    counts = _windows(np.ones_like(x), kernel_shape, strides, pads, auto_pad).sum((-1, -2))
    return np.asarray(sums / counts)


def norm(
    x: Array, *, p: Any, kernel_shape: Sequence[int], strides: Sizes, pads: Sizes, auto_pad: str
) -> Array:
    powers = _windows(np.abs(x) ** p, kernel_shape, strides, pads, auto_pad).sum((-1, -2))
    return np.asarray(powers ** (1 / p)).astype(x.dtype)


def global_norm(x: Array, *, p: Any) -> Array:
    axes = tuple(range(2, x.ndim))
    return np.asarray((np.abs(x) ** p).sum(axes, keepdims=True) ** (1 / p)).astype(x.dtype)


def regions(x: Array, rois: Array, *, pooled_shape: Sequence[int], spatial_scale: Any) -> Array:
    """The largest element in each cell of each region: batch, left, top, right, bottom, all inclusive."""
    found = np.zeros((len(rois), x.shape[1], *pooled_shape), x.dtype)
    for place, (batch, *corners) in enumerate(rois):
        left, top, right, bottom = (round(float(corner * spatial_scale)) for corner in corners)
        region = x[int(batch), :, top : bottom + 1, left : right + 1]
        for i, rows in enumerate(_cells(region.shape[1], pooled_shape[0])):
            for j, columns in enumerate(_cells(region.shape[2], pooled_shape[1])):
                found[place, :, i, j] = region[:, rows, columns].max((1, 2))
    return found


def _cells(length: int, count: int) -> list[slice]:
    """Where each cell begins, rounded down, and ends, rounded up."""
    return [slice(each * length // count, -(-(each + 1) * length // count)) for each in range(count)]
