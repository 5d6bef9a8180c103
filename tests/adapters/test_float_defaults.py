"""FLOAT attributes hold float32: an omitted one has the same value as its default written into the node."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import Feeds, build, run

from opshift import ConversionRefused, convert_version, default_registry
from opshift.model.element_types import round_to_float32
from opshift.model.node import Node

DATA = np.random.default_rng(0).standard_normal((2, 4, 3))
ROW: Feeds = {name: np.full(4, value) for name, value in (("s", 1.5), ("b", 0.5), ("m", 100.0), ("v", 50.0))}
CASES = [
    pytest.param("BatchNormalization", 15, {"x": DATA, **ROW}, {"training_mode": 1}, 3, id="training"),
    pytest.param("BatchNormalization", 15, {"x": DATA, **ROW}, {}, 1, id="inference"),
    pytest.param("LayerNormalization", 17, {"x": DATA, "s": np.ones(3)}, {}, 1, id="layer normalization"),
    pytest.param("Celu", 28, {"x": DATA}, {}, 1, id="celu"),
    pytest.param("ThresholdedRelu", 22, {"x": DATA}, {}, 1, id="thresholded relu"),
    pytest.param("Shrink", 9, {"x": DATA}, {}, 1, id="shrink"),
    pytest.param("LRN", 13, {"x": DATA[None]}, {"size": 3}, 1, id="lrn"),
    pytest.param(
        "InstanceNormalization", 22, {"x": DATA, "s": ROW["s"], "b": ROW["b"]}, {}, 1, id="instance"
    ),
    pytest.param(
        "GroupNormalization", 21, {"x": DATA, "s": ROW["s"], "b": ROW["b"]}, {"num_groups": 2}, 1, id="g"
    ),
]


def _constants(model: onnx.ModelProto) -> list[bytes]:
    stored = (each.t for node in model.graph.node for each in node.attribute if each.HasField("t"))
    tensors = [*model.graph.initializer, *stored]
    return sorted(numpy_helper.to_array(each).tobytes() for each in tensors)


@pytest.mark.parametrize(("op_type", "opset", "feeds", "attributes", "outputs"), CASES)
@pytest.mark.parametrize("target", [19, 16, 13, 9, 8, 6])
def test_omitted_attribute_equals_its_default(
    op_type: str, opset: int, feeds: Feeds, attributes: dict[str, int], outputs: int, target: int
) -> None:
    version = default_registry().get_schema(op_type, opset)
    defaults = {
        name: each.default
        for name, each in version.attributes.items()
        if each.type == "FLOAT" and isinstance(each.default, float)
    }
    assert all(round_to_float32(value) == value for value in defaults.values())
    names = [f"y{position}" for position in range(outputs)]
    models = [
        build(
            [helper.make_node(op_type, list(feeds), names, **attributes, **stated)],
            feeds,
            dict.fromkeys(names, TensorProto.DOUBLE),
            opset,
        )
        for stated in ({}, defaults)
    ]
    try:
        omitted, written = (convert_version(model, target) for model in models)
    except ConversionRefused:
        return
    assert _constants(omitted) == _constants(written)


def test_training_computes_the_same_statistics() -> None:
    feeds = {"x": DATA, **ROW}
    names = ["y", "mean", "variance"]
    node = helper.make_node("BatchNormalization", list(feeds), names, training_mode=1)
    model = build([node], feeds, dict.fromkeys(names, TensorProto.DOUBLE), 14)
    for found, expected in zip(run(convert_version(model, 13), feeds), run(model, feeds), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_gelu_has_the_constants_of_its_function_body() -> None:
    node = helper.make_node("Gelu", ["x"], ["y"], approximate="tanh")
    model = build([node], {"x": DATA}, {"y": TensorProto.DOUBLE}, 20)
    result = run(convert_version(model, 19), {"x": DATA})
    np.testing.assert_allclose(result[0], run(model, {"x": DATA})[0], rtol=1e-14)


def test_attributes_of_emitted_nodes_are_read_as_float32() -> None:
    node = Node("LRN", ["x"], ["y"], {"alpha": 0.1})
    expected = float(np.float32(0.1))
    assert (node.attribute("alpha"), node.attribute("beta", 0.1)) == (expected, expected)
