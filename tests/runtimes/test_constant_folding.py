"""Constants that onnxruntime computes before the first run, compared with its optimized models."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import onnxruntime
import pytest

from opshift.model.messages import ModelProto
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import get_runtime
from opshift.runtimes.constant_folding import ConstantFolding
from opshift.runtimes.kernel_lookup import KernelLookup
from opshift.runtimes.model_nodes import ModelNodes

RUNTIME = get_runtime(f"onnxruntime-{onnxruntime.__version__}")

MODEL = """
    <ir_version: 8, opset_import: ["" : {opset}, "local" : 1, "com.microsoft" : 1, "ai.onnx.ml" : 3]>
    g (float[2, 3] x, float[2] d) => ({output} y) <float[2] d = {{1.0, 2.0}}>
    {{ c = Constant <value = float[3] {{1.0, 2.0, 3.0}}> () s = Constant <value = float {{0.5}}> ()
       q = Constant <value = uint8[3] {{1, 2, 3}}> () z = Constant <value = uint8 {{1}}> () {nodes} }}
    {functions}
"""
HALF = "h = Constant <value = float16[3] {15360, 16384, 16896}> ()"
FUNCTION = '<domain: "local", opset_import: ["" : 17]> F (a) => (b) { t = Abs (a) b = Neg (t) }'
WITHOUT_KERNEL = '<domain: "local", opset_import: ["" : 17]> F (a) => (b) { t = Cos (a) b = Neg (t) }'


@pytest.mark.parametrize(
    ("output", "nodes", "functions", "is_folded"),
    [
        ("float[3]", "y = Abs (c)", "", True),
        ("float[2]", "y = Abs (d)", "", False),  # callers can override `d`
        ("float16[3]", HALF + "y = Cos (h)", "", False),  # no kernel
        ("float16[3]", HALF + "y = Transpose (h)", "", True),
        ("float[3]", "y = local.F (c)", FUNCTION, True),
        ("float16[3]", HALF + "y = local.F (h)", WITHOUT_KERNEL, False),
        ("float[3]", "y = HardSwish (c)", "", False),  # its function body follows after the folding
        ("float[3]", "y = HardSwish (c)", FUNCTION, True),
        ("float[3]", "y = ai.onnx.ml.Binarizer (c)", "", False),
        ("float[3]", "y = com.microsoft.Gelu (c)", "", False),
        ("uint8[3]", "y = QuantizeLinear (c, s, z)", "", True),
        ("uint8[3]", "y = com.microsoft.QuantizeLinear (c, s, z)", "", True),
        ("float[3]", "y = DequantizeLinear (q, s, z)", "", False),
        ("float[3]", "y = com.microsoft.DequantizeLinear (q, s, z)", "", False),
        ("uint8[3]", "f = DequantizeLinear (q, s, z) y = QuantizeLinear (f, s, z)", "", False),
        (
            "uint8[3]",
            "f = DequantizeLinear (q, s, z) r = Relu (f) y = QuantizeLinear (r, s, z)",
            "",
            True,
        ),
        ("int64", "y = Size (x)", "", False),
        ("int64", "y = Size (c)", "", True),
        ("int64[2]", "y = Shape (x)", "", True),
        ("int64[1]", "y = Shape (d)", "", True),  # the sizes of `d` are fixed
        (
            "float[3]",
            "e = SequenceConstruct (c) i = Constant <value_int = 0> () y = SequenceAt (e, i)",
            "",
            False,
        ),
        ("int64[1, 3]", "y = NonZero (c)", "", True),
        ("int64[1, n]", "y = NonZero (c)", "", False),  # unknown size
    ],
)
def test_knows_which_constants_are_computed_before_the_first_run(
    output: str, nodes: str, functions: str, tmp_path: Path, *, is_folded: bool
) -> None:
    text = MODEL.format(opset=17, output=output, nodes=nodes, functions=functions)
    model = onnx.parser.parse_model(text)
    assert _is_computed_once(model) is is_folded
    assert _is_initializer_after_optimization(model, tmp_path) is is_folded


@pytest.mark.parametrize(("opset", "is_folded"), [(15, False), (16, True)])
def test_knows_comparisons_without_inferred_sizes(tmp_path: Path, opset: int, *, is_folded: bool) -> None:
    nodes = "y = LessOrEqual (c, c)"
    model = onnx.parser.parse_model(MODEL.format(opset=opset, output="bool[n]", nodes=nodes, functions=""))
    assert _is_computed_once(model) is is_folded
    assert _is_initializer_after_optimization(model, tmp_path) is is_folded


def _is_computed_once(model: onnx.ModelProto) -> bool:
    nodes = ModelNodes(ModelProto.FromString(model.SerializeToString()), default_registry())
    unfolded = ConstantFolding(KernelLookup(RUNTIME, RUNTIME.schemas)).unfolded(nodes)
    (node, *_) = nodes.nodes
    return node.constants.without(unfolded).contain(nodes.scope, "y")


def _is_initializer_after_optimization(model: onnx.ModelProto, folder: Path) -> bool:
    path = folder / "optimized.onnx"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return any(each.name == "y" for each in onnx.load(path).graph.initializer)
