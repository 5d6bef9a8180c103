"""Values that are the same in every run, which onnxruntime computes before the first run."""

from __future__ import annotations

import onnx.parser
import pytest
from support.runtimes import support_of

FOLDED = """
    <ir_version: 10, opset_import: ["" : 18, "local" : 1, "com.microsoft" : 1]>
    g (float[2] x, float[2] d) => (float[] y) <float[2] d = {{1.0, 2.0}}> {{
        k = Constant <value_floats = [1.0, 2.0]> () {0} o = Optional (c) y = OptionalGetElement (o)
    }}
    <domain: "local", opset_import: ["" : 18, "com.microsoft" : 1]> F (a) => (r) {{ {1} }}
    {2}
"""
SIZES = "n = local.F (x) s = Shape (n) c = Cast <to = 1> (s)"
OWN_GELU = """
    <domain: "com.microsoft", opset_import: ["" : 18]> Gelu (a) => (r) { r = RandomNormalLike (a) }
"""


@pytest.mark.parametrize(
    ("nodes", "body", "functions", "is_refused"),
    [
        (SIZES, "r = NonZero (a)", "", False),
        (SIZES, "b = Cast <to = 7> (a) r = ConstantOfShape (b)", "", False),
        (SIZES, "z = Constant <value_float = 0.0> () g = Greater (a, z) r = Compress (a, g)", "", False),
        (SIZES, "r = Neg (a)", "", True),
        ("c = local.F (k)", "r = com.microsoft.Gelu (a)", OWN_GELU, False),
        ("c = local.F (d)", "r = Hardmax (a)", "", False),
        ("c = Hardmax (d)", "r = Neg (a)", "", False),
        ("c = Hardmax (k)", "r = Neg (a)", "", True),
        ("h = Hardmax (k) c = local.F (h)", "o = Optional (a) r = OptionalGetElement (o)", "", True),
        ("h = Hardmax (d) c = local.F (h)", "o = Optional (a) r = OptionalGetElement (o)", "", False),
    ],
)
def test_tells_constants_from_values_that_vary(
    nodes: str, body: str, functions: str, *, is_refused: bool
) -> None:
    # onnxruntime fails if it computes the value of an optional in advance
    model = onnx.parser.parse_model(FOLDED.format(nodes, body, functions))
    missing = support_of(model, "onnxruntime-1.20.1").missing
    assert any("optional of a constant" in each.reason for each in missing) == is_refused
