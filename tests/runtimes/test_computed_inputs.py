"""Nodes that runtimes refuse or compute wrongly because of the nodes that compute their inputs."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest
from support.runtimes import model_of_nodes, support_of, verdict_of

OPENVINO, TRACT = "openvino-2026.4.1", "tract-0.23.9"

CAST = "c = Cast <to = 7> (x)"
"""Cast of floats to int64, which tract reads in the type of its sizes."""
RESULT = "y = Cast <to = 1> (r)"
PAIR = "p = Constant <value = int64[2, 2] {1, 1, 1, 1}> () i = Constant <value_ints = [1]> ()"
SHAPE = f"{PAIR} s = GatherND (p, i)"
"""Constant shape that OpenVINO does not compute in advance."""
RANGE = """
    a = Constant <value = float {{{0}}}> () b = Constant <value = float {{3}}> ()
    d = Constant <value = float {{{1}}}> () y = Range (a, b, d)
"""
SLOPES = "k = Constant <value = float[{0}] {{{1}}}> () y = PRelu (x, k)"
RESIZED = """
    k = Constant <value = float[1, 2, 2] {{1, 2, 3, 4}}> () s = Constant <value = float[{0}] {{{1}}}> ()
    y = Resize <mode = "{2}"{3}> ({4}, "", s)
"""
NEGATED = "k = Constant <value_floats = [1.5]> () n = Neg (k)"
LENGTH = """
    l = Constant <value = int64 {{4}}> () a = Abs (l) n = Constant <value = int64 {{2}}> ()
    y = STFT (x, n, , {0})
"""
CHOSEN = """
    i = If <then_branch = a () => (float[1, 1, {0}] t) {{ t = Neg (x) }},
        else_branch = b () => (float[1, 1, {0}] u) {{ u = Abs (x) }}> (b)
    w = Constant <value = float[1, 1, 1] {{2}}> () y = Conv (i, w)
"""
SELECTED = "c = Cast <to = 2> (n) w = Where (n, c, c) y = Cast <to = 1> (w)"
COMPRESSED = """
    k = Constant <value_floats = [1.0, 2.0]> () b = Constant <value = bool[2] {{0, 0}}> ()
    v = Compress ({0}, b) y = Flatten (v)
"""
STEPPED = """
    r = Constant <value_ints = [4, 2]> () s = Constant <value_ints = [0]> ()
    e = Constant <value_ints = [9]> () t = Constant <value_ints = [{1}]> ()
    d = {0} a = Abs (d) y = Slice (a, s, e, s, t)
"""
SQUEEZED = "w = {0} y = Squeeze (w)"
SELECTED_BY_POSITIONS = """
    z = NonZero (b) k = Constant <value_ints = [-1]> () i = Reshape (z, k)
    s = Constant <value_ints = [1, 2]> ()
    g = Gather (x, i) r = Reshape (g, s) y = Squeeze (r)
"""
BOUNDS = "s = Constant <value_ints = [0]> () e = Constant <value_ints = [2]> ()"
POWER = "e = Constant <value = float[{0}] {{{1}}}> () y = Pow (x, e)"
QUANTIZED = """
    s = Constant <value_float = 0.5> () q = QuantizeLinear <output_dtype = {0}> (x, s) y = Cast <to = 1> (q)
"""
NOTHING = "n = Constant <value_ints = [3, 0]> () k = ConstantOfShape <value = float[1] {0}> (n)"
SQUARED = "c = Cast <to = {0}> (x) d = Cast <to = {1}> (x) p = Mul (c, d) y = Cast <to = 1> (p)"
"""Square that tract finds, because it joins equal nodes."""
MOVED = "s = Constant <value_ints = [0]> () t = {0} y = Reshape <allowzero = 1> (t, s)"
LIMIT = "k = Constant <value = float {{{0}}}> () y = Clip (x, k)"
SIZE = "n = Shape (v) y = Cast <to = 1> (n)"


@pytest.mark.parametrize(
    ("runtime", "inputs", "nodes", "opset", "verdict"),
    [
        (TRACT, "float[2] x", f"{CAST} r = NonZero (c) {RESULT}", 13, "does not run"),
        (TRACT, "float[2] x", f"c = Cast <to = 6> (x) r = NonZero (c) {RESULT}", 13, "runs"),
        (TRACT, "int64[2] c", f"r = NonZero (c) {RESULT}", 13, "runs"),
        (TRACT, "float[2] x", f"{CAST} a = Add (c, c) r = Sign (a) {RESULT}", 13, "does not run"),
        (TRACT, "float[2] x, int64[2] z", f"{CAST} a = Max (z, c) r = Sign (a) {RESULT}", 13, "does not run"),
        (TRACT, "float[2] x, int64[3] z", f"{CAST} a = Gather (z, c) r = Sign (a) {RESULT}", 13, "runs"),
        (TRACT, "float[2] x", f"n = Shape (x) r = BitwiseNot (n) {RESULT}", 18, "does not run"),
        (TRACT, "float[2] x, int64[2] z", f"{CAST} r = BitwiseOr (z, c) {RESULT}", 18, "does not run"),
        (
            TRACT,
            "float[2] x",
            f"{CAST} a = Abs (c) b = CastLike (x, a) r = Sign (b) {RESULT}",
            15,
            "does not run",
        ),
        (TRACT, "float[2] x, int64 z", f"b = CastLike (x, z) r = Sign (b) {RESULT}", 15, "runs"),
        (TRACT, "float[2, 1] x, float[2] v", "n = Size (x) y = ReduceSum (v, n)", 13, "does not run"),
        (
            TRACT,
            "float[2] x",
            f"z = Constant <value = float[1] {{0}}> () {CAST.replace('x', 'z')} y = ReduceMax (x, c)",
            18,
            "does not run",
        ),
        (TRACT, "float[2] x", "c = Constant <value_ints = [0]> () y = ReduceMax (x, c)", 18, "warns"),
        (TRACT, "", RANGE.format(0, 1), 13, "runs"),
        (TRACT, "", RANGE.format(0, 0.5), 13, "may run"),
        (TRACT, "", RANGE.format(4, -1), 13, "may run"),
        (TRACT, "float[3] x, int64[1] k", f"v, i = TopK (x, k) {SIZE}", 13, "may run"),
        (TRACT, "float[3] v", SIZE, 13, "runs"),
        (TRACT, "float[2] x", COMPRESSED.format("k"), 13, "may run"),
        (TRACT, "float[8] x", STEPPED.format("Reshape (x, r)", 2), 13, "may run"),
        (TRACT, "float[8] x", STEPPED.format("Reshape (x, r)", 1), 13, "runs"),
        (TRACT, "float[8] x", STEPPED.format("Neg (x)", 2), 13, "runs"),
        (TRACT, "float[8] x", STEPPED.format("Softmax (x)", 2), 13, "warns"),
        (TRACT, "float[8] x", STEPPED.format("Softmax (x)", 1), 13, "runs"),
        (TRACT, "float[2] x", COMPRESSED.format("k").replace("Flatten (v)", "Flatten (x)"), 13, "runs"),
        (TRACT, "float[3] x", f"{BOUNDS} y = Slice (x, s, e)", 13, "runs"),
        (TRACT, "float[1, 1, 3] x", "y = Squeeze <axes = [1, -3]> (x)", 11, "may run"),
        (TRACT, "float[1, 1, 3] x", "y = Squeeze <axes = [-3, 1]> (x)", 11, "runs"),
        (
            TRACT,
            "float[1, 1, 3] x",
            "a = Constant <value_ints = [1, 0]> () y = Squeeze (x, a)",
            13,
            "may run",
        ),
        (TRACT, "float[1, 1, 3] x", "y = Squeeze (x)", 13, "runs"),
        (TRACT, "int32[2] x", SQUARED.format(7, 7), 13, "does not run"),
        (TRACT, "int32[2] x", SQUARED.format(6, 6), 13, "runs"),
        (TRACT, "float x, float[2] z", "y = Mean (x, z)", 13, "does not run"),
        (TRACT, "float x, float[2] z", "y = Mean (z, x)", 13, "runs"),
        (OPENVINO, "float[2] x", LIMIT.format("nan"), 13, "does not run"),
        (OPENVINO, "float[2] x", LIMIT.format("1"), 13, "warns"),
        (TRACT, "float[2] x", QUANTIZED.format(3), 21, "does not run"),
        (TRACT, "float[2] x", QUANTIZED.format(2), 21, "runs"),
        (OPENVINO, "float[2, 3] x", f"{NOTHING} y = MatMul (x, k)", 13, "may run"),
        (OPENVINO, "float[1, 1] x, float[1, 1] z", "y = Min (x, z)", 7, "may run"),
        (OPENVINO, "float[1] x, float[1] z", "y = Min (x, z)", 7, "warns"),
        (
            OPENVINO,
            "float[N] x, int64 i",
            "e = Gather (x, i) s = Size (e) y = Cast <to = 1> (s)",
            13,
            "may run",
        ),
        (OPENVINO, "float x", "s = Size (x) y = Cast <to = 1> (s)", 13, "runs"),
        (OPENVINO, "float[0, 2] x", MOVED.format("Transpose (x)"), 14, "may run"),
        (OPENVINO, "float[0, 2] x", MOVED.format("Abs (x)"), 14, "runs"),
        (TRACT, "float[3] x", POWER.format("2, 3", "1, 1, 1, 1, 1, 1"), 13, "may run"),
        (TRACT, "float[3] x", POWER.format("3", "1, 1, 1"), 13, "runs"),
        (TRACT, "float[3] x", POWER.format("1", "3"), 13, "runs"),
        (OPENVINO, "float[1] x", f"{SHAPE} y = Expand (x, s)", 13, "may run"),
        (OPENVINO, "float[1] x", f"{SHAPE} a = Abs (s) y = Expand (x, a)", 13, "may run"),
        (OPENVINO, "float[1] x", f"{PAIR} s = Gather (i, i) y = Expand (x, i)", 13, "runs"),
        (
            OPENVINO,
            "float[1] x, int64[2, 2] p, int64[1] i",
            "s = GatherND (p, i) y = Expand (x, s)",
            13,
            "runs",
        ),
        (
            OPENVINO,
            "float[3, 3] x, int64[2] z",
            "a, b = Split <axis = 0> (z) y = ReduceSum (x, b)",
            13,
            "may run",
        ),
        (OPENVINO, "float[3, 3] x, int64[1] z", "y = ReduceSum (x, z)", 13, "runs"),
        (OPENVINO, "float[2, 3, 4] x", SLOPES.format(4, "1, 2, 3, 4"), 16, "warns"),
        (OPENVINO, "float[3, 4] x", SLOPES.format(4, "1, 2, 3, 4"), 16, "runs"),
        (OPENVINO, "float[2, 3, 4] x", SLOPES.format(1, "1"), 16, "runs"),
        (OPENVINO, "float[2, 3, 4] x", SLOPES.format(4, "1, 2, 3, 4"), 6, "runs"),
        (OPENVINO, "float[1, 1, N] x, bool b", CHOSEN.format("N"), 13, "warns"),
        (OPENVINO, "float[1, 1, 3] x, bool b", CHOSEN.format("3"), 13, "runs"),
        (OPENVINO, "float[2] x", f"n = IsNaN (x) {SELECTED}", 13, "does not run"),
        (OPENVINO, "bool[2] n", SELECTED, 13, "runs"),
        (OPENVINO, "int64 n", SQUEEZED.format("HannWindow (n)"), 17, "may run"),
        (OPENVINO, "float[5] x", SQUEEZED.format("Abs (x)"), 17, "runs"),
        (OPENVINO, "float[5] x, bool[2] b", SELECTED_BY_POSITIONS, 13, "may run"),
        (OPENVINO, "float[1] v", f"{NEGATED} y = Abs (n)", 13, "warns"),
        (OPENVINO, "float[1] v", "k = Constant <value_floats = [1.5]> () y = Abs (k)", 13, "runs"),
        (OPENVINO, "float x, int64[0] s", "a = Abs (s) y = Expand (x, a)", 13, "may run"),
        (OPENVINO, "float[1] x, int64[0] s", "a = Abs (s) y = Expand (x, a)", 13, "runs"),
        (OPENVINO, "float[3] x, int64[1] s, int64[1] e", "y = Slice (x, s, e)", 13, "warns"),
        (OPENVINO, "float[1, 8, 1] x, float w", LENGTH.format("l"), 17, "runs"),
        (OPENVINO, "float[1, 8, 1] x, float w", LENGTH.format("a"), 17, "may run"),
        (OPENVINO, "float[1] v", f"{NEGATED} c = Concat <axis = 0> (n, v) y = Abs (c)", 13, "warns"),
        (OPENVINO, "float[1] v", "n = Neg (v) y = Abs (n)", 13, "runs"),
        (OPENVINO, "", RESIZED.format(1, "2", "linear", ", axes = [2]", "k"), 18, "may run"),
        (OPENVINO, "", RESIZED.format(1, "2", "nearest", ", axes = [2]", "k"), 18, "runs"),
        (OPENVINO, "float[1, 2, 2] x", RESIZED.format(1, "2", "linear", ", axes = [2]", "x"), 18, "runs"),
        (
            OPENVINO,
            "float[2, M] x, float[N] s, uint8[N] z",
            "q = QuantizeLinear <axis = 0> (x, s, z) y = Cast <to = 1> (q)",
            13,
            "does not run",
        ),
        (
            OPENVINO,
            "float[2, M] x, float[2] s, uint8[2] z",
            "q = QuantizeLinear <axis = 0> (x, s, z) y = Cast <to = 1> (q)",
            13,
            "warns",
        ),
    ],
)
def test_predicts_nodes_with_computed_inputs(
    runtime: str, inputs: str, nodes: str, opset: int, verdict: str
) -> None:
    assert verdict_of(model_of_nodes(inputs, nodes, opset), runtime) == verdict


@pytest.mark.parametrize(
    ("body", "argument", "is_refused"),
    [("Hardmax (a)", "k", True), ("Hardmax (a)", "x", False), ("RandomNormalLike (a)", "k", False)],
)
def test_knows_constants_that_functions_return(body: str, argument: str, *, is_refused: bool) -> None:
    # onnxruntime inlines the function, and fails when it folds the optional
    model = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        g (float[2] x) => (float[] y) {{
            k = Constant <value_floats = [1.0, 2.0]> () c = local.F ({argument}) o = Optional (c)
            y = OptionalGetElement (o)
        }}
        <domain: "local", opset_import: ["" : 18]> F (a) => (r) {{ r = {body} }}
    """)
    missing = support_of(model, "onnxruntime-1.20.1").missing
    assert any("optional of a constant" in each.reason for each in missing) == is_refused


@pytest.mark.parametrize("axis", range(4))
def test_predicts_reductions_of_data_without_elements(axis: int) -> None:
    sizes = ", ".join("0" if each == axis else "2" for each in range(4))
    model = model_of_nodes(f"float[{sizes}] x", "y = ReduceMax (x)", 13)
    assert support_of(model, "onnxruntime-1.20.1").uncertain
    assert not support_of(model, "onnxruntime-1.24.4").uncertain


@pytest.mark.parametrize(
    ("bounds", "is_warned"), [("(x, k, e)", True), ("(x, s, k)", True), ("(x, s, e)", False)]
)
def test_warns_that_tract_misplaces_computed_bounds(bounds: str, *, is_warned: bool) -> None:
    model = model_of_nodes("float[3] x, int64[1] k", f"{BOUNDS} y = Slice {bounds}", 13)
    warnings = support_of(model, TRACT).warnings
    assert any("select wrong elements" in each for each in warnings) == is_warned


def test_openvino_does_not_know_declared_sizes_of_windows() -> None:
    model = model_of_nodes("int64 n", SQUEEZED.format("HannWindow (n)"), 17)
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [5]))
    assert support_of(model, OPENVINO).uncertain
