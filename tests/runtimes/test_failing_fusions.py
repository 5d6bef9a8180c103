"""Nodes that optimizers of onnxruntime merge with errors, all measured in the releases."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from support.runtimes import model_of_nodes, verdict_of

from random_graphs.execution import run_in_onnxruntime

OLD, MIDDLE, LATEST = "onnxruntime-1.20.1", "onnxruntime-1.23.2", "onnxruntime-1.31.1"

HALVES = """
    e = Constant <value = float16 {16384}> () k = Constant <value = float16 {16384}> ()
    o = Constant <value = float16 {168}> () w = Constant <value = float16[2] {15360, 15360}> ()
    b = Constant <value = float16[2] {15360, 16384}> ()
"""
"""Constants in float16: `e` and `k` are 2, `o` is 0.00001."""
NORM = """
    p = Pow (x, e) m = ReduceMean <axes = [-1]> (p) a = Add (m, o) r = Sqrt (a) d = Div (x, r) y = Mul (d, w)
"""
WIDE = """
    p = Pow (x, e) f = Cast <to = 1> (p) m = ReduceMean <axes = [-1]> (f) g = Cast <to = 1> (o) a = Add (m, g)
    r = Sqrt (a) h = Cast <to = 10> (r) d = Div (x, h) y = Mul (d, w)
"""
SECOND = """
    p2 = Pow (u, k) m2 = ReduceMean <axes = [-1]> (p2) a2 = Add (m2, o) r2 = Sqrt (a2) d2 = Div (u, r2)
    y2 = Mul (d2, b)
"""
CENTERED = "q = ReduceMean <axes = [-1]> (h) x = Sub (h, q)" + NORM.replace("y =", "s =") + "y = Add (s, b)"
X, XU, H, HU = (
    "float16[3, 2] x",
    "float16[3, 2] x, float16[3, 2] u",
    "float16[3, 2] h",
    "float16[3, 2] h, float16[3, 2] u",
)

LIMITS = "l = Constant <value = float {{{0}}}> () u = Constant <value = float {{{1}}}> ()"
STEPS = "s = Constant <value = float {{{0}}}> () z = Constant <value = {1} {{{2}}}> ()"
RANGE = LIMITS.format(0, 6) + STEPS.format(0.0235294122248888, "uint8", 0)
MIDDLE_ZERO = LIMITS.format(0, 6) + STEPS.format(0.0235294122248888, "uint8", 100)
NARROW = LIMITS.format(0, 3) + STEPS.format(0.0235294122248888, "uint8", 0)
SIGNED = LIMITS.format(-7, 7) + STEPS.format(0.05, "int8", 0)
CLIPPED = "c = Clip ({0}, l, u) q = QuantizeLinear (c, s, z) y = DequantizeLinear (q, s, z)"

WEIGHTS = "w = Constant <value = float[2, 2] {{1, 2, 3, 4}}> () k = Cast <to = {0}> (w) "
TURNED = "t = Transpose <perm = [1, 0, 2]> ({0})"


@pytest.mark.parametrize(
    ("inputs", "nodes", "opset", "verdict"),
    [
        (X, NORM, 17, "runs"),
        (XU, NORM + "z = Div (u, e)", 17, "does not run"),
        (XU, NORM + "z = Div (u, k)", 17, "does not run"),
        (XU, WIDE + "z = Div (u, k)", 17, "does not run"),
        (XU, WIDE + "z = Max (u, k)", 17, "runs"),
        (XU, NORM + "z = Max (u, k)", 17, "runs"),  # has a kernel for float16
        (XU, NORM + "z = Div (u, o)", 17, "runs"),
        (XU, NORM + "z = Pow (u, k)", 16, "does not run"),
        (XU, NORM + "z = Pow (u, k)", 17, "does not run"),
        (XU, NORM + "v = Sub (u, x) z = Pow (v, k)", 17, "does not run"),
        (XU, NORM + "i = Identity (k) z = Div (u, i)", 17, "does not run"),
        (XU, NORM + "i = Dropout (k) z = Div (u, i)", 17, "does not run"),
        (XU, NORM + "i = Cast <to = 10> (k) z = Div (u, i)", 17, "does not run"),
        (XU, NORM + "i = Cast <to = 1> (k) f = Cast <to = 1> (u) z = Div (f, i)", 17, "runs"),
        (XU, NORM + SECOND, 16, "does not run"),
        (XU, NORM + SECOND, 17, "does not run"),
        (H, CENTERED, 16, "runs"),
        (HU, CENTERED + "z = Div (u, k)", 16, "does not run"),
        (HU, CENTERED + "z = Div (u, k)", 17, "runs"),  # becomes LayerNormalization
        (HU, CENTERED + SECOND, 16, "does not run"),
        (HU, CENTERED + SECOND, 17, "runs"),
    ],
)
def test_refuses_float16_norms_with_shared_exponents(
    inputs: str, nodes: str, opset: int, verdict: str
) -> None:
    model = model_of_nodes(inputs, HALVES + nodes, opset)
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    assert verdict_of(model, MIDDLE) == verdict
    assert verdict_of(model, LATEST) == "runs"


EXPONENT = "e = Constant <value = float16 {16384}> () o = Constant <value = float16 {168}> ()"
HALF = "k = Constant <value = float16 {16384}> () v = Div (u, k)"


@pytest.mark.parametrize(
    ("call", "function", "verdict"),
    [
        ("z = my.F (u, k)", "F (u, k) => (v) { v = Div (u, k) }", "does not run"),
        ("z = my.F (u, k)", "F (u, k) => (v) { i = Identity (k) v = Div (u, i) }", "does not run"),
        ("z = my.F (u)", f"F (u) => (v) {{ {HALF} }}", "does not run"),
        ("z = my.F (u, k)", "F (u, k) => (v) { v = Max (u, k) }", "runs"),
        ("z = my.Div (u, k)", "Div (u, k) => (v) { v = Max (u, k) }", "runs"),
        ("z = Neg (u)", f"F (u) => (v) {{ {HALF} }}", "runs"),  # no node calls the function
    ],
)
def test_counts_readers_of_exponents_in_inlined_functions(call: str, function: str, verdict: str) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "my" : 1]> '
        f"g ({XU}) => (float16[3, 2] y, float16[3, 2] z) {{ {HALVES} {NORM} {call} }} "
        f'<domain: "my", opset_import: ["" : 17]> {function}'
    )
    assert verdict_of(model, MIDDLE) == verdict


@pytest.mark.parametrize(
    ("call", "verdict"),
    [("y = my.F (x, w)", "runs"), ("r = my.F (x, w) y = my.F (r, b)", "does not run")],
)
def test_finds_norms_in_inlined_functions(call: str, verdict: str) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "my" : 1]> '
        f"g (float16[3, 2] x) => (float16[3, 2] y) {{ {HALVES} {call} }} "
        f'<domain: "my", opset_import: ["" : 17]> F (x, w) => (y) {{ {EXPONENT} {NORM} }}'
    )
    assert verdict_of(model, MIDDLE) == verdict


@pytest.mark.parametrize(
    ("nodes", "function", "verdict"),
    [
        ("y = my.F (x)", "F (x) => (y) {{ {0} {1} }}", "does not run"),
        ("a = Identity (x) y = my.F (a)", "F (x) => (y) {{ {0} {1} }}", "does not run"),
        ("a = Neg (x) y = my.F (a)", "F (x) => (y) {{ {0} {1} }}", "runs"),
        ("x1 = my.F (x) {0} {2}", "F (x) => (y) {{ y = Identity (x) }}", "does not run"),
        ("x1 = my.F (x) {0} {2}", "F (x) => (y) {{ y = Neg (x) }}", "runs"),
    ],
)
def test_follows_clipped_values_through_inlined_functions(nodes: str, function: str, verdict: str) -> None:
    parts = RANGE, CLIPPED.format("x"), CLIPPED.format("x1")
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 13, "my" : 1]> '
        f"g (float[2, 3] x) => (float[2, 3] y) {{ {nodes.format(*parts)} }} "
        f'<domain: "my", opset_import: ["" : 13]> {function.format(*parts)}'
    )
    assert verdict_of(model, MIDDLE) == verdict


@pytest.mark.parametrize(
    ("nodes", "opset", "verdict"),
    [
        (RANGE + CLIPPED.format("x"), 13, "does not run"),
        (RANGE + "i = Identity (x)" + CLIPPED.format("i"), 13, "does not run"),
        (RANGE + "i = Dropout (x)" + CLIPPED.format("i"), 13, "does not run"),
        (RANGE + "i = Relu (x)" + CLIPPED.format("i"), 13, "does not run"),
        (RANGE + "i = Cast <to = 1> (x)" + CLIPPED.format("i"), 13, "does not run"),
        (RANGE + "i = Neg (x)" + CLIPPED.format("i"), 13, "runs"),
        (RANGE + CLIPPED.format("x").replace("QuantizeLinear (c", "QuantizeLinear (t").replace(
            "q =", "t = Transpose (c) q ="), 13, "does not run"),
        (RANGE + CLIPPED.format("x").replace(", u)", ")"), 13, "does not run"),
        (RANGE + CLIPPED.format("x").replace(", l, u)", ")"), 13, "runs"),
        (RANGE + CLIPPED.format("x") + "o = Neg (c)", 13, "runs"),
        (MIDDLE_ZERO + CLIPPED.format("x"), 13, "runs"),
        (NARROW + CLIPPED.format("x"), 13, "runs"),
        (SIGNED + CLIPPED.format("x"), 13, "does not run"),
    ],
)  # fmt: skip
def test_refuses_clips_of_graph_inputs_before_quantization(nodes: str, opset: int, verdict: str) -> None:
    model = model_of_nodes("float[2, 3] x", nodes, opset)
    assert verdict_of(model, OLD) == verdict_of(model, MIDDLE) == verdict
    assert verdict_of(model, LATEST) == "runs"
    assert run_in_onnxruntime(model, {"x": np.ones((2, 3), np.float32)})


@pytest.mark.parametrize(
    ("runtime", "inputs", "nodes", "verdict"),
    [
        (LATEST, "float16[2, 3, 2] x", WEIGHTS.format(10) + TURNED.format("x")
            + "m = MatMul (t, k)", "does not run"),
        (LATEST, "float[2, 3, 2] x", WEIGHTS.format(10) + TURNED.format("x")
            + "c = Cast <to = 10> (t) m = MatMul (c, k)", "runs"),
        (LATEST, "int32[2, 3, 2] x", WEIGHTS.format(10) + TURNED.format("x")
            + "c = Cast <to = 10> (t) m = MatMul (c, k)", "does not run"),
        (LATEST, "float16[2, 3, 2] x", WEIGHTS.format(10) + "a = Sin (x)" + TURNED.format("a")
            + "m = MatMul (t, k)", "runs"),  # has no kernel for float16
        (LATEST, "float16[2, 3, 2] x", WEIGHTS.format(10) + "a = Concat <axis = 0> (x)" + TURNED.format("a")
            + "m = MatMul (t, k)", "does not run"),
        (LATEST, "float16[2, 3, 2] x, float[2] v", WEIGHTS.format(10) + TURNED.format("x")
            + "p = MatMul (t, k) f = Cast <to = 1> (p) m = Add (f, v)", "runs"),
        (LATEST, "float16[2, 3, 2] x", WEIGHTS.format(1) + TURNED.format("x")
            + "c = Cast <to = 1> (t) m = MatMul (c, k)", "does not run"),
        (LATEST, "float[2, 3, 2] x", WEIGHTS.format(1) + TURNED.format("x")
            + "c = Cast <to = 1> (t) m = MatMul (c, k)", "runs"),
        (MIDDLE, "double[2, 3, 2] x", WEIGHTS.format(11) + TURNED.format("x") + "m = MatMul (t, k)", "runs"),
        (MIDDLE, "double[2, 3, 2] x, double[3, 2, 4] v", TURNED.format("x")
            + "m = MatMul (t, v)", "does not run"),
        ("onnxruntime-1.18.1", "float[2, 3, 2] x", WEIGHTS.format(11) + TURNED.format("x")
            + "c = Cast <to = 11> (t) m = MatMul (c, k)", "runs"),
        (OLD, "float[2, 3, 2] x", WEIGHTS.format(11) + TURNED.format("x")
            + "c = Cast <to = 11> (t) m = MatMul (c, k)", "does not run"),
        (OLD, "double[2, 3] x, double[4, 3] v", "t = Transpose (v) m = MatMul (x, t)", "does not run"),
        (OLD, "double[5, 2, 3] x, double[4, 3] v", "t = Transpose (v) m = MatMul (x, t)", "does not run"),
    ],
)  # fmt: skip
def test_refuses_products_of_transposed_tensors(runtime: str, inputs: str, nodes: str, verdict: str) -> None:
    model = model_of_nodes(inputs, f"{nodes} n = Shape (m) y = Cast <to = 1> (n)", 17)
    assert verdict_of(model, runtime) == verdict


@pytest.mark.parametrize(("opset", "verdict"), [(16, "runs"), (17, "does not run")])
def test_refuses_norms_of_values_cast_to_float16(opset: int, verdict: str) -> None:
    nodes = HALVES + "h = Cast <to = 10> (h0)" + CENTERED
    model = model_of_nodes("float[3, 2] h0", nodes, opset)
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    assert verdict_of(model, LATEST) == verdict
    if verdict == "runs":
        assert run_in_onnxruntime(model, {"h0": np.ones((3, 2), np.float32)})


def test_stops_at_deeply_nested_calls() -> None:
    functions = " ".join(
        f"""<domain: "my", opset_import: ["" : 13, "my" : 1]> F{each} (x) => (y) {{
            a = my.F{each - 1} (x) y = my.F{each - 1} (a)
        }}"""
        for each in range(1, 25)
    )
    nodes = f"x1 = my.F24 (x) {RANGE} {CLIPPED.format('x1')}"
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 13, "my" : 1]> '
        f"g (float[2, 3] x) => (float[2, 3] y) {{ {nodes} }} {functions} "
        '<domain: "my", opset_import: ["" : 13]> F0 (x) => (y) { y = Identity (x) }'
    )
    assert verdict_of(model, MIDDLE) == "runs"
