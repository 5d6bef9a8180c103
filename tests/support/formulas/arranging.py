"""Operators that move elements, in versions with lists as attributes or as floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from support.execution import Array


def cast(x: Array, *, to: str) -> Array:
    """Cast to a type given by name."""
    return x.astype(helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(to)))


def concat(*inputs: Array, axis: int | None) -> Array:
    return np.concatenate(inputs, 1 if axis is None else axis)


def pad(x: Array, *, paddings: Sequence[int], mode: str, value: Any) -> Array:
    """Pad; `paddings` lists the beginnings of all axes, then the ends."""
    widths = list(zip(paddings[: x.ndim], paddings[x.ndim :], strict=True))
    options: dict[str, Any] = {"mode": mode, **({"constant_values": value} if mode == "constant" else {})}
    return np.asarray(np.pad(x, widths, **options))


def split(
    x: Array,
    sizes: Array | None = None,
    *,
    axis: int | None,
    split: Sequence[int] | None,
    output_count: int,
) -> Any:
    """Split; without sizes into equal parts."""
    lengths = split if sizes is None else sizes.tolist()
    positions: Any = output_count if lengths is None else np.cumsum(lengths)[:-1]
    return tuple(np.split(x, positions, axis or 0))


def tile(x: Array, tiles: Array, axis: Array) -> Array:
    assert tiles.dtype == axis.dtype == x.dtype
    assert tiles.size == axis.size == 1
    return np.concatenate([x] * int(tiles.item()), int(axis.item()))


def upsample(x: Array, *, height_scale: Any, width_scale: Any, mode: str) -> Array:
    """Upsample with the nearest pixel to the left and above."""
    assert mode == "nearest"
    rows = np.arange(int(x.shape[2] * height_scale)) / height_scale
    columns = np.arange(int(x.shape[3] * width_scale)) / width_scale
    return np.asarray(x[:, :, rows.astype(int)][..., columns.astype(int)])


def scatter(x: Array, indices: Array, updates: Array, *, axis: int) -> Array:
    found = x.copy()
    np.put_along_axis(found, indices, updates, axis)
    return found


def constant_fill(*, shape: Sequence[int], value: Any) -> Array:
    return np.full(shape, value, np.float32)


def given_tensor_fill(*, shape: Sequence[int], values: Any) -> Array:
    return np.array(values, np.float32).reshape(shape)
