"""Writes `segmenter-9.onnx`, the small model that the README converts: opset 9, IR version 3.

python tests/golden/make.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PATH = Path(__file__).with_name("segmenter-9.onnx")


def segmenter() -> onnx.ModelProto:
    """Convolutions, an enlarged middle, and a softmax over classes: operators that changed after opset 9."""
    random = np.random.default_rng(0)
    weights: dict[str, np.ndarray] = {
        "stem.weight": random.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32),
        "stem.scale": np.ones(8, np.float32),
        "stem.bias": np.zeros(8, np.float32),
        "stem.mean": np.zeros(8, np.float32),
        "stem.var": np.ones(8, np.float32),
        "scales": np.array([1, 1, 2, 2], np.float32),
        "head.weight": random.normal(0, 0.3, (4, 8, 1, 1)).astype(np.float32),
    }
    node = helper.make_node
    nodes = [
        node("Pad", ["image"], ["padded"], "pad", pads=[0, 0, 1, 1, 0, 0, 1, 1], value=0.5),
        node("Conv", ["padded", "stem.weight"], ["stem"], "stem.conv", strides=[2, 2]),
        node(
            "BatchNormalization",
            ["stem", "stem.scale", "stem.bias", "stem.mean", "stem.var"],
            ["normal"],
            "stem.norm",
        ),
        node("Clip", ["normal"], ["active"], "stem.relu6", min=0.0, max=6.0),
        node("Dropout", ["active"], ["kept"], "dropout", ratio=0.1),
        node("Upsample", ["kept", "scales"], ["large"], "upsample", mode="linear"),
        node("Conv", ["large", "head.weight"], ["scores"], "head.conv"),
        node("Softmax", ["scores"], ["classes"], "softmax", axis=3),
        node("ReduceMean", ["classes"], ["column"], "mean", axes=[3], keepdims=1),
        node("Squeeze", ["column"], ["mask"], "squeeze", axes=[3]),
    ]
    inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 32, 32])]
    inputs += [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, each.shape) for name, each in weights.items()
    ]
    graph = helper.make_graph(
        nodes,
        "segmenter",
        inputs,
        [helper.make_tensor_value_info("mask", TensorProto.FLOAT, [1, 4, 32])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=3, producer_name="example"
    )


if __name__ == "__main__":
    PATH.write_bytes(segmenter().SerializeToString())
