"""Operators that move elements: lists as attributes or inputs, and negative axes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto

from support.nodes.row import IMAGE, POSITIVE, Row, X, floats, row

REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
TWO_OUTPUTS = {"y": TensorProto.FLOAT, "z": TensorProto.FLOAT}
INDICES = np.array([[2, 0], [1, 2]])


def rows() -> Iterator[Row]:
    yield from reductions()
    yield from lists()
    yield from splits()
    yield from positions()


def reductions() -> Iterator[Row]:
    for name in REDUCTIONS:
        yield row(f"Reduce{name}", 1, {"x": POSITIVE}, {"axes": [1], "keepdims": 0})
        for version in (11, 13):
            if (name, version) != ("Sum", 13):  # its axes are an input
                yield row(f"Reduce{name}", version, {"x": POSITIVE}, {"axes": [-1], "keepdims": 0})


def lists() -> Iterator[Row]:
    yield row("Concat", 1, {"a": X, "b": X})
    yield row("Reshape", 1, {"x": X}, {"shape": [3, -1]})
    yield row("Flatten", 9, {"x": INDICES}, {"axis": 2}, outputs={"y": TensorProto.INT64})
    yield row("Tile", 1, {"x": X, "t": floats(2), "a": floats(1)}, constants="t a")
    yield row("TopK", 1, {"x": X}, {"k": 2}, outputs={"y": TensorProto.FLOAT, "i": TensorProto.INT64})
    yield row("Slice", 1, {"x": X}, {"starts": [1], "ends": [3], "axes": [1]})
    yield row("Pad", 1, {"x": X}, {"paddings": [0, 1, 0, 2], "value": 3.0})
    yield row("Pad", 2, {"x": X}, {"pads": [0, 1, 0, 2], "value": 3.0})
    yield row("Squeeze", 1, {"x": IMAGE}, {"axes": [0]})
    yield row("Squeeze", 11, {"x": IMAGE}, {"axes": [-4]})
    yield row("Unsqueeze", 1, {"x": X}, {"axes": [0, 2]})
    yield row("Unsqueeze", 11, {"x": X}, {"axes": [0, -1]})


def splits() -> Iterator[Row]:
    yield row("Split", 1, {"x": X}, {"axis": 0}, outputs=TWO_OUTPUTS)
    yield row("Split", 2, {"x": X}, outputs=TWO_OUTPUTS)
    yield row("Split", 11, {"x": X}, {"split": [1, 2], "axis": -1}, outputs=TWO_OUTPUTS)
    yield row("Split", 13, {"x": X}, {"axis": 0}, outputs=TWO_OUTPUTS)


def positions() -> Iterator[Row]:
    yield row("DepthToSpace", 1, {"x": IMAGE.reshape(1, 4, 2, 6)}, {"blocksize": 2})
    feeds = {"x": X, "i": INDICES, "u": POSITIVE[:, :2]}
    yield row("Scatter", 9, feeds, {"axis": 1})
    yield row("Scatter", 11, {**feeds, "i": INDICES - 3}, {"axis": 1}, constants="i")
    bounds = {"x": X, "s": np.array([1]), "e": np.array([3]), "a": np.array([1])}
    yield row("DynamicSlice", 1, bounds)
