"""Pooling by definition, for two-dimensional images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from support.execution import Array

Sizes = Sequence[int] | None


def _windows(x: Array, kernel_shape: Sequence[int], strides: Sizes, pads: Sizes, auto_pad: str) -> Array:
    """Return the elements under each kernel position along two additional axes."""
    assert auto_pad == "NOTSET"
    top, left, bottom, right = pads or (0, 0, 0, 0)
    row_stride, column_stride = strides or (1, 1)
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    return np.asarray(sliding_window_view(padded, kernel_shape, (2, 3))[:, :, ::row_stride, ::column_stride])


def average_pool(
    x: Array, *, kernel_shape: Sequence[int], strides: Sizes, pads: Sizes, auto_pad: str
) -> Array:
    """Return averages that exclude padding."""
    sums = _windows(x, kernel_shape, strides, pads, auto_pad).sum((-1, -2))
    counts = _windows(np.ones_like(x), kernel_shape, strides, pads, auto_pad).sum((-1, -2))
    return np.asarray(sums / counts)


def lp_pool(
    x: Array, *, p: Any, kernel_shape: Sequence[int], strides: Sizes, pads: Sizes, auto_pad: str
) -> Array:
    powers = _windows(np.abs(x) ** p, kernel_shape, strides, pads, auto_pad).sum((-1, -2))
    return np.asarray(powers ** (1 / p)).astype(x.dtype)


def global_lp_pool(x: Array, *, p: Any) -> Array:
    axes = tuple(range(2, x.ndim))
    return np.asarray((np.abs(x) ** p).sum(axes, keepdims=True) ** (1 / p)).astype(x.dtype)


def max_roi_pool(x: Array, rois: Array, *, pooled_shape: Sequence[int], spatial_scale: Any) -> Array:
    """Return the maximum in each cell of each region (batch, left, top, right, bottom, all inclusive)."""
    found = np.zeros((len(rois), x.shape[1], *pooled_shape), x.dtype)
    for index, (batch, *corners) in enumerate(rois):
        left, top, right, bottom = (round(float(corner * spatial_scale)) for corner in corners)
        region = x[int(batch), :, top : bottom + 1, left : right + 1]
        for i, rows in enumerate(_cells(region.shape[1], pooled_shape[0])):
            for j, columns in enumerate(_cells(region.shape[2], pooled_shape[1])):
                found[index, :, i, j] = region[:, rows, columns].max((1, 2))
    return found


def _cells(length: int, count: int) -> list[slice]:
    """Return the range of each cell: its start rounded down, its end rounded up."""
    return [slice(cell * length // count, -(-(cell + 1) * length // count)) for cell in range(count)]
