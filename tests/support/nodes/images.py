"""Pooling, resampling and regions of images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto

from support.nodes.row import IMAGE, RANDOM, Row, floats, row

REGIONS = floats([[0, 0, 0, 2, 3], [0, 1, 1, 3, 3]])
WINDOW = {"kernel_shape": [2, 3], "strides": [2, 1]}
UNEVEN = {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1}
DILATED = {"kernel_shape": [2, 2], "dilations": [2, 3]}


def rows() -> Iterator[Row]:
    yield from pools()
    yield from norms()
    yield from resampled()
    yield from regions()


def pools() -> Iterator[Row]:
    for op in ("AveragePool", "MaxPool"):
        yield row(op, 1, {"x": IMAGE}, WINDOW)
        yield row(op, 10, {"x": IMAGE}, {**WINDOW, "ceil_mode": 1})
        yield row(op, 11, {"x": IMAGE}, {**WINDOW, "ceil_mode": 1})
        yield row(op, 22, {"x": IMAGE}, UNEVEN)
    yield row("AveragePool", 7, {"x": IMAGE}, {**WINDOW, "pads": [1, 0, 1, 2], "count_include_pad": 1})
    yield row("AveragePool", 19, {"x": IMAGE}, DILATED)
    yield row("MaxPool", 8, {"x": IMAGE}, {**WINDOW, "storage_order": 1})
    yield row("MaxPool", 12, {"x": (IMAGE * 9).astype(np.int8)}, WINDOW, outputs={"y": TensorProto.INT8})
    yield row("MaxPool", 12, {"x": IMAGE}, WINDOW)


def norms() -> Iterator[Row]:
    for op in ("GlobalLpPool", "LpPool"):
        window = WINDOW if op == "LpPool" else {}
        yield row(op, 1, {"x": IMAGE}, {**window, "p": 3.0})
        yield row(op, 2, {"x": IMAGE}, {**window, "p": 3})
    yield row("GlobalLpPool", 22, {"x": IMAGE}, {"p": 3})
    yield row("LpPool", 11, {"x": IMAGE}, {**WINDOW, "p": 3})
    yield row("LpPool", 18, {"x": IMAGE}, {**DILATED, "p": 3})
    yield row("LpPool", 22, {"x": IMAGE}, {**UNEVEN, "p": 3})


def resampled() -> Iterator[Row]:
    yield row("Upsample", 1, {"x": IMAGE}, {"height_scale": 2.0, "width_scale": 3.0})
    yield row("Upsample", 7, {"x": IMAGE}, {"scales": [1.0, 1.0, 2.0, 1.5]})
    scales = {"x": IMAGE, "s": floats([1, 1, 1.3, 1.3])}
    yield row("Upsample", 9, scales, {"mode": "linear"})
    yield row("Upsample", 10, {"x": IMAGE, "s": floats([1, 1, 2, 3])})
    yield row("Resize", 10, scales)
    yield row("Resize", 10, scales, constants="s")
    sizes = {"x": IMAGE, "none": np.zeros(0, np.float32), "s": np.array([1, 2, 3, 8])}
    yield row("Resize", 11, sizes, inputs=["x", "none", "none", "s"], constants="none")
    grid = {"x": IMAGE, "g": RANDOM.uniform(-1, 1, (1, 2, 3, 2)).astype(np.float32)}
    yield row("GridSample", 16, grid, {"mode": "bicubic"})


def regions() -> Iterator[Row]:
    for version in (1, 22):
        yield row("MaxRoiPool", version, {"x": IMAGE, "r": REGIONS}, {"pooled_shape": [2, 2]})
    boxes = {"x": IMAGE, "r": floats([[0, 0, 4, 3]]), "i": np.array([0])}
    yield row("RoiAlign", 10, boxes, {"output_height": 2, "output_width": 2, "sampling_ratio": 2})
