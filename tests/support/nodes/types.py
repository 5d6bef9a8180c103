"""Operators with element types as attributes, and operators without inputs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto, helper

from support.nodes.row import Row, X, row

HALF = TensorProto.FLOAT16
SINGLE_RESULT = {
    "RandomNormal": {"mean": 3.0, "scale": 1e-30},
    "RandomUniform": {"low": 3.0, "high": 3.0},
}


def rows() -> Iterator[Row]:
    yield from casts()
    yield from quantized()
    yield from constants()
    yield from random()


def casts() -> Iterator[Row]:
    yield row("Cast", 1, {"x": X}, {"to": "INT32"}, outputs={"y": TensorProto.INT32})
    yield row("Cast", 24, {"x": X}, {"to": HALF, "round_mode": "down"}, outputs={"y": HALF})
    like = {"x": X, "like": X.astype(np.float16)}
    yield row("CastLike", 19, like, {"saturate": 0}, outputs={"y": HALF})
    yield row("CastLike", 24, like, {"round_mode": "down"}, outputs={"y": HALF})


def quantized() -> Iterator[Row]:
    scale = np.array(0.3, np.float32)
    integers = {"x": np.array([-7, 20, 100], np.int32), "s": scale, "z": np.array(3, np.uint8)}
    yield row("QuantizeLinear", 13, integers, outputs={"y": TensorProto.UINT8})
    half = {"x": X.astype(np.float16), "s": scale.astype(np.float16), "z": np.array(3, np.uint8)}
    yield row("QuantizeLinear", 19, half, outputs={"y": TensorProto.UINT8})
    yield row("DequantizeLinear", 19, {**half, "x": np.array([7, 20], np.uint8)}, outputs={"y": HALF})
    attributes = {"precision": TensorProto.FLOAT, "output_dtype": TensorProto.INT8}
    feeds = {"x": X.astype(np.float16), "s": scale}
    yield row("QuantizeLinear", 23, feeds, attributes, outputs={"y": TensorProto.INT8})
    quantized_feeds = {"x": (X * 4).astype(np.int8), "s": scale}
    yield row("DequantizeLinear", 23, quantized_feeds, {"output_dtype": HALF}, outputs={"y": HALF})


def constants() -> Iterator[Row]:
    integers = helper.make_tensor("", TensorProto.INT64, [2], [3, 4])
    yield row("Constant", 9, {}, {"value": integers}, outputs={"y": TensorProto.INT64})
    yield row("Constant", 12, {}, {"value_floats": [1.5, 2.5]})
    yield row("ConstantFill", 1, {}, {"shape": [2, 2], "value": 1.5})
    yield row("GivenTensorFill", 1, {}, {"shape": [2], "values": [1.0, 2.0]})


def random() -> Iterator[Row]:
    """Yield random operators with a single possible result."""
    probabilities = np.array([0, 1, 1], np.float32)
    for version in (15, 22):
        yield row("Bernoulli", version, {"x": probabilities})
    for version in (7, 22):
        logits = np.array([[-1e4, 0, -1e4]], np.float32)
        yield row(
            "Multinomial",
            version,
            {"x": logits},
            {"sample_size": 4},
            outputs={"y": TensorProto.INT32},
        )
    for version in (1, 22):
        for op, attributes in SINGLE_RESULT.items():
            yield row(op, version, {}, {"shape": [2, 3], **attributes})
            yield row(f"{op}Like", version, {"x": X}, attributes)
