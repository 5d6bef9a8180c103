"""Normalization over channels and groups, in training and inference mode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto

from support.execution import Array
from support.nodes.row import IMAGE, POSITIVE, Row, X, floats, row

CHANNELS = np.array([0.5, 2], np.float32)
STATISTICS: dict[str, Array] = {"s": CHANNELS, "b": CHANNELS - 1, "m": CHANNELS / 4, "v": CHANNELS}


def rows() -> Iterator[Row]:
    yield from batch_normalization()
    yield from other_normalizations()
    yield from dropout()


def batch_normalization() -> Iterator[Row]:
    feeds = {"x": IMAGE, **STATISTICS}
    yield row("BatchNormalization", 1, feeds, {"consumed_inputs": [0, 0, 0, 1, 1], "is_test": 1})
    yield row("BatchNormalization", 6, feeds, {"is_test": 1})
    yield row("BatchNormalization", 7, {"x": X, **dict.fromkeys("sbmv", POSITIVE[0])}, {"spatial": 0})
    training = {"y": TensorProto.FLOAT, "m2": TensorProto.FLOAT, "v2": TensorProto.FLOAT, "m3": 0, "v3": 0}
    yield row("BatchNormalization", 9, feeds, outputs=training)
    mixed = {**feeds, "x": IMAGE.astype(np.float16)}
    yield row("BatchNormalization", 15, mixed, outputs={"y": TensorProto.FLOAT16})


def other_normalizations() -> Iterator[Row]:
    feeds = {"x": IMAGE, "s": CHANNELS, "b": CHANNELS}
    yield row("InstanceNormalization", 1, feeds, {"consumed_inputs": [0, 0, 0]})
    yield row("InstanceNormalization", 6, {**feeds, "x": IMAGE[:, :, 0]})
    yield row("GroupNormalization", 18, {"x": IMAGE, "s": floats([2]), "b": floats([1])}, {"num_groups": 1})
    yield row("MeanVarianceNormalization", 1, {"x": IMAGE})
    yield row("MeanVarianceNormalization", 13, {"x": IMAGE})


def dropout() -> Iterator[Row]:
    """Yield Dropout nodes; before opset 12, the content of the mask in inference mode is unspecified."""
    both = {"y": TensorProto.FLOAT, "mask": TensorProto.FLOAT}
    yield row("Dropout", 1, {"x": X}, {"consumed_inputs": [0], "is_test": 1})
    yield row("Dropout", 6, {"x": X}, {"is_test": 1})
    yield row("Dropout", 7, {"x": X}, outputs=both, to=10)
    yield row("Dropout", 10, {"x": X}, outputs={**both, "mask": TensorProto.BOOL}, to=7)
    yield row("Dropout", 10, {"x": X}, {"ratio": 0.25})
