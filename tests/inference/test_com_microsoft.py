"""Facts that pass through nodes of com.microsoft, and conversions of other nodes that need them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser
from support.execution import assert_equal, run

import opshift

PRODUCERS = {
    "QLinearConcat": "c = com.microsoft.QLinearConcat <axis = 1> (s, z, x, s, z, x, s, z)",
    "QLinearAdd": "c = com.microsoft.QLinearAdd (x, s, z, x, s, z, t, z)",
    "QLinearMul": "c = com.microsoft.QLinearMul (x, s, z, x, s, z, t, z)",
    "QLinearSigmoid": "c = com.microsoft.QLinearSigmoid (x, s, z, t, z)",
    "QLinearLeakyRelu": "c = com.microsoft.QLinearLeakyRelu (x, s, z, t, z)",
    "QLinearConv": "c = com.microsoft.QLinearConv (x, s, z, w, s, z, t, z)",
    "QLinearAveragePool": "c = com.microsoft.QLinearAveragePool <kernel_shape = [2, 2]> (x, s, z, t, z)",
    "DequantizeLinear and QuantizeLinear": """
        a = com.microsoft.DequantizeLinear (x, s, z)
        c = com.microsoft.QuantizeLinear (a, t, z)
    """,
    "two of them": """
        a = com.microsoft.QLinearSigmoid (x, s, z, t, z)
        c = com.microsoft.QLinearConcat <axis = 0> (s, z, a, s, z, x, s, z)
    """,
}

MODEL = """
<ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1]>
g (uint8[1, 2, 8, 8] x) => (uint8[n, c, h, v] y)
<float s = {{0.04}}, float t = {{0.1}}, uint8 z = {{3}}, uint8[2, 2, 1, 1] w = {{9, 4, 30, 1}}>
{{
    {nodes}
    y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c)
}}
"""


def _model(nodes: str) -> onnx.ModelProto:
    model = parser.parse_model(MODEL.format(nodes=nodes))
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    for _ in range(4):
        model.graph.output[0].type.tensor_type.shape.dim.add()
    return model


@pytest.mark.parametrize("nodes", PRODUCERS.values(), ids=PRODUCERS)
@pytest.mark.parametrize("target", [8, 11, 12, 21])
def test_max_pool_of_uint8_is_cast_where_opsets_lack_it(nodes: str, target: int) -> None:
    model = _model(nodes)
    converted = opshift.convert_version(model, target)
    operators = [node.op_type for node in converted.graph.node]
    assert operators[-3:].count("Cast") == (2 if target < 12 else 0)
    x = np.random.default_rng(1).integers(0, 255, (1, 2, 8, 8), np.uint8)
    assert_equal(run(converted, {"x": x}), run(model, {"x": x}), 0)


RANKS = {
    "FusedMatMul": ("float[2, 3, 4] x, float[4, 5] w", "c = com.microsoft.FusedMatMul (x, w)", (2, 3, 5)),
    "BiasGelu": ("float[2, 3, 4] x, float[4] w", "c = com.microsoft.BiasGelu (x, w)", (2, 3, 4)),
    "SkipLayerNormalization": (
        "float[2, 3, 4] x, float[4] w",
        "c = com.microsoft.SkipLayerNormalization (x, x, w)",
        (2, 3, 4),
    ),
    "ScaledSiLU": ("float[2, 3, 4] x, float[4] w", "c = com.microsoft.ScaledSiLU (x)", (2, 3, 4)),
}


@pytest.mark.parametrize(("inputs", "node", "shape"), RANKS.values(), ids=RANKS)
@pytest.mark.parametrize("opsets", [(13, 11), (11, 13)], ids=["down", "up"])
def test_ranks_pass_through(inputs: str, node: str, shape: tuple[int, ...], opsets: tuple[int, int]) -> None:
    """Softmax has a different meaning below opset 13, so its conversion depends on the rank."""
    source, target = opsets
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {source}, "com.microsoft" : 1]>'
        f"g ({inputs}) => (float[a, b, c] y) {{ {node} y = Softmax <axis = 1> (c) }}"
    )
    converted = opshift.convert_version(model, target)
    generator = np.random.default_rng(1)
    feeds = {
        each.name: generator.normal(size=[d.dim_value for d in each.type.tensor_type.shape.dim]).astype("f")
        for each in model.graph.input
    }
    (found,) = run(converted, feeds)
    assert found.shape == shape
    assert_equal([found], run(model, feeds))


@pytest.mark.parametrize(
    ("node", "length"),
    [
        ("QLinearAdd (x, s, z, x, s, z, s, z)", ""),
        ("QLinearMul (x, s, z, x, s, z, s, z)", ""),
        ("QLinearWhere (c, x, s, z, x, s, z, s, z)", ""),
        ("QLinearWhere (c, x, s, z, x, s, z, s, z)", "[1]"),
    ],
)
def test_scales_and_zero_points_do_not_change_the_rank(node: str, length: str) -> None:
    """Opsets below 11 lack negative axes of Unsqueeze, so its conversion depends on the rank."""
    model = parser.parse_model(
        f"""<ir_version: 7, opset_import: ["" : 13, "com.microsoft" : 1]>
        g (uint8 x) => (float[n] y)
        <bool c = {{1}}, float{length} s = {{0.5}}, uint8{length} z = {{1}}, int64[1] axes = {{-1}}>
        {{ q = com.microsoft.{node} r = Cast <to = 1> (q) y = Unsqueeze (r, axes) }}"""
    )
    feeds = {"x": np.array(7, np.uint8)}
    (found,) = run(opshift.convert_version(model, 10), feeds)
    assert found.shape == (1,)
    assert_equal([found], run(model, feeds), 0)
