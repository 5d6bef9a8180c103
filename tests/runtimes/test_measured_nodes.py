"""Nodes that measurements in OpenVINO, tract and releases of onnxruntime found refused or wrong."""

from __future__ import annotations

import onnx
import pytest
from support.runtimes import model_of_nodes, support_of

from opshift import fit

OPENVINO, TRACT = "openvino-2026.4.1", "tract-0.23.9"
LATEST, OLD, NAMELESS = "onnxruntime-1.31.1", "onnxruntime-1.23.2", "onnxruntime-1.20.1"

LSTM = "float[1, 2, 3] x, float[1, 8, 3] w, float[1, {0}, 2] r"
GRU = "float[1, 2, 3] x, float[1, {0}, 3] w, float[1, 6, 2] r"
BIAS = "b = Constant <value = float[1, 16] {" + ",".join(["0"] * 16) + "}> () "
GRU_BIAS = "b = Constant <value = float[1, 12] {" + ",".join(["0"] * 12) + "}> () "
SUMS = "c = Constant <value = int32[4] {1, 2, 3, 4}> () m = MatMulInteger (a, b) y = Add (m, c)"
PRODUCT = "t = Transpose (b) y = MatMul (a, t)"
BRANCHES = """
    y = If (c) <then_branch = t () => (float[2, 2] p) {{ p = Abs (x) }},
                else_branch = e () => (float[] q) {{ q = {0} (x) }}>
"""
QUANTIZED = "q = QuantizeLinear (u, s, z) k = Constant <value = double {2.0}> () y = Add (x, k)"
QUANTIZED_INPUTS = "double[2] x, float[2] u, float s, uint8 z"
PADDED = 'p = Constant <value = int64[2] {{{0}}}> () y = Pad <mode = "{1}"> (x, p)'
CONSTANT_FACTOR = "a = Constant <value = float[2, 2] {{1, 2, 3, 4}}> () y = Gemm <transA = {0}> (a, b)"
INTEGERS = "p = MatMulInteger (a, b) y = Cast <to = 1> (p)"
NOTHING = "c = Constant <value = float[0, 3] {{}}> () y = {0} (x, c)"
CHANNELS = "uint8[1, {0}, 5] x, float s, uint8 z, uint8[1, {0}, 3] w, float{1} t"
QLINEAR = "y = QLinearConv (x, s, z, w, t, z, s, z)"
DFT = "n = Constant <value = int64 {{8}}> () y = DFT <axis = 0, onesided = {0}> (x, n)"
RNN = """
    c = Constant <value = float[1, 1, 3] {{1, 2, 3}}> ()
    w = Constant <value = float[1, 2, 3] {{1, 2, 3, 4, 5, 6}}> () y = RNN <hidden_size = 2> ({0}, w, r)
"""
GROUPS = "y = GroupNormalization <num_groups = 2, stash_type = {0}> (x, s, s)"
QUANTIZED_DATA = "uint8[1, 1, 2] x, float s, uint8 z, uint8[1, 1, 1] w, float t"
LOOP = """
    y = Loop (n, c, x) <body = b (int64 i, bool d, float{0} s) => (bool o, float{0} t) {{
        o = Identity (d) t = Abs (s)
    }}>
"""
SCALES = "float[{0}] x, float[{1}] s, int8[4] z"
QUANTIZE = "q = QuantizeLinear (x, s, z) y = Cast <to = 1> (q)"
AXES = "p = Constant <value_ints = [0, 1]> () a = Constant <value = {0}[1] {{0}}> () y = Pad (x, p, , a)"
POOLED = 'y = {0} <kernel_shape = [2], strides = [2], ceil_mode = {1}, auto_pad = "{2}"> (x)'
MAXIMUM = "-infinity may become the smallest finite number, and NaN may be lost"
RESIZED = 's = Constant <value_ints = [{0}]> () y = Resize <mode = "linear"> (x, "", "", s)'
BATCH = "c = Constant <value = float[1, 1, 2] {1, 2}> () "
WEIGHTS = """
    w = Constant <value = float[1, 2, 3] {1, 2, 3, 4, 5, 6}> ()
    r = Constant <value = float[1, 2, 2] {1, 2, 3, 4}> () y = RNN <hidden_size = 2> (x, w, r, "", "", c)
"""
CAPTURED = """
    y = Neg (x) z = If (c) <
        then_branch = t () => (float p) { p = ReduceMean <keepdims = 0> (%s) },
        else_branch = e () => (float q) { q = Constant <value = float {1}> () }>
"""
COPIED = "y = {} <noop_with_empty_axes = 1> (x)"
PAIRS = """
    z = Constant <value = int64 {0}> () o = Constant <value = int64 {1}> ()
    a = Gather (x, z) b = Gather (x, o) c = Gather (w, z) d = Gather (w, o)
    e = Add (a, b) f = Add (c, d) y = Add (e, f)
"""
LARGEST = "k = Constant <value_ints = [{0}]> () y, i = TopK (x, k)"
RECURRENT = """
    v = Constant <value = float {{1}}> () a = Constant <value_ints = [{2}, 2, 3]> () w = Expand (v, a)
    b = Constant <value_ints = [{2}, 2, 2]> () r = Expand (v, b)
    y = RNN <layout = {0}, direction = "{1}", hidden_size = 2> (x, w, r)
"""
SCALED_PRODUCT = """
    a = Constant <value = double[1, 1] {{2}}> () g = Gemm <alpha = {0}> (a, a, x) y = Cast <to = 1> (g)
"""
SCALED = "s = Constant <value = float[4] {{{0}}}> () y = Resize (x, s)"
STFT = """
    n = Constant <value = int64 {{2}}> () w = Constant <value = {0}[4] {{1, 1, 1, 1}}> ()
    h = STFT (x, n, w) y = Cast <to = 1> (h)
"""
RANGE = """
    s = Constant <value = float {{0}}> () e = Constant <value = float {{{0}}}> ()
    d = Constant <value = float {{{1}}}> () y = Range (s, e, d)
"""


@pytest.mark.parametrize(
    ("runtime", "inputs", "nodes", "opset", "verdict"),
    [
        (OPENVINO, LSTM.format(8), BIAS + '"", y = LSTM <hidden_size = 2> (x, w, r, b)', 14, "runs"),
        (
            OPENVINO,
            LSTM.format("N"),
            BIAS + '"", y = LSTM <hidden_size = 2> (x, w, r, b)',
            14,
            "does not run",
        ),
        (OPENVINO, LSTM.format("N"), '"", y = LSTM <hidden_size = 2> (x, w, r)', 14, "does not run"),
        (OPENVINO, LSTM.format(8), '"", y = LSTM <hidden_size = 2> (x, w, r)', 14, "runs"),
        (OPENVINO, LSTM.format(8), '"", y = LSTM (x, w, r)', 14, "does not run"),
        (LATEST, LSTM.format(8), '"", y = LSTM (x, w, r)', 14, "does not run"),
        (TRACT, LSTM.format(8), '"", y = LSTM (x, w, r)', 14, "runs"),
        (
            OPENVINO,
            "float[2] x",
            "f = Cast <to = 17> (x) b = Cast <to = 9> (f) y = Cast <to = 1> (b)",
            21,
            "does not run",
        ),
        (TRACT, LSTM.format(8), 'a, "", y = LSTM <hidden_size = 2> (x, w, r)', 14, "does not run"),
        (TRACT, LSTM.format(8), '"", a, y = LSTM <hidden_size = 2> (x, w, r)', 14, "does not run"),
        (TRACT, LSTM.format(8), '"", "", y = LSTM <hidden_size = 2> (x, w, r)', 14, "runs"),
        (TRACT, LSTM.format(8), "a, y = LSTM <hidden_size = 2> (x, w, r)", 14, "runs"),
        (
            TRACT,
            LSTM.format(8).replace("2, 3] x", "1, 3] x"),
            "a, b, y = LSTM <hidden_size = 2> (x, w, r)",
            14,
            "runs",
        ),
        (
            TRACT,
            LSTM.format(8) + ", float[1, 2, 2] h, float[1, 2, 2] c",
            'a, "", y = LSTM <hidden_size = 2> (x, w, r, "", "", h, c)',
            14,
            "runs",
        ),
        (OPENVINO, GRU.format(6), "y = GRU <hidden_size = 2, linear_before_reset = 1> (x, w, r)", 14, "runs"),
        (
            OPENVINO,
            GRU.format("N"),
            "y = GRU <hidden_size = 2, linear_before_reset = 1> (x, w, r)",
            14,
            "does not run",
        ),
        (OPENVINO, GRU.format("N"), "y = GRU <hidden_size = 2> (x, w, r)", 14, "runs"),
        (
            OPENVINO,
            GRU.format("N"),
            GRU_BIAS + "y = GRU <hidden_size = 2, linear_before_reset = 1> (x, w, r, b)",
            14,
            "runs",
        ),
        (OPENVINO, "uint8[2, 2] a, int8[2, N] b", SUMS, 13, "may run"),
        (OPENVINO, "uint8[2, 2] a, int8[2, 4] b", SUMS, 13, "runs"),
        (OPENVINO, "float[0, 3] a, float[4, 3] b", PRODUCT, 13, "does not run"),
        (OPENVINO, "float[0, 3] a, float[3, 4] b", "y = MatMul (a, b)", 13, "runs"),
        (OPENVINO, "int64[2, 3] a, int64[3, 0] b", "y = MatMul (a, b)", 13, "does not run"),
        (OPENVINO, "float[2, 3] a, float[4, 3] b", PRODUCT, 13, "runs"),
        (OPENVINO, "float[0, 3] a, float[4, 3] b", "y = Gemm <transB = 1> (a, b)", 13, "does not run"),
        (OPENVINO, "float[0, 3] a, float[3, 4] b", "y = Gemm (a, b)", 13, "runs"),
        (OPENVINO, "float[2, 0] b", CONSTANT_FACTOR.format(1), 13, "does not run"),
        (OPENVINO, "float[2, 0] b", CONSTANT_FACTOR.format(0), 13, "runs"),
        (OPENVINO, "uint8[2] a, uint8[2, 4] b", INTEGERS, 13, "wrong"),
        (OPENVINO, "uint8[1, 2] a, uint8[2, 4] b", INTEGERS, 13, "runs"),
        (
            OPENVINO,
            "float[0, 3] a, float[4, 3] b",
            'y = Einsum <equation = "ij,kj->ik"> (a, b)',
            13,
            "may run",
        ),
        (OPENVINO, "bool c, float[2, 2] x", BRANCHES.format("Neg"), 13, "runs"),
        (OPENVINO, "bool c, float[2, 2] x", BRANCHES.format("ReduceSum <keepdims = 0>"), 13, "does not run"),
        (OPENVINO, QUANTIZED_INPUTS, QUANTIZED, 13, "may run"),
        (OPENVINO, "double[2] x", "k = Constant <value = double {2.0}> () y = Add (x, k)", 13, "runs"),
        (
            OPENVINO,
            QUANTIZED_INPUTS.replace("double", "float"),
            QUANTIZED.replace("double", "float"),
            13,
            "runs",
        ),
        (OPENVINO, "float[1] x, int64[N] s", "y = Expand (x, s)", 13, "does not run"),
        (OPENVINO, "float[1] x, int64[2] s", "y = Expand (x, s)", 13, "runs"),
        (OPENVINO, "float[4] x", "y = Unique <sorted = 0> (x)", 11, "wrong"),
        (OPENVINO, "float[4] x", "y = Unique (x)", 11, "runs"),
        (OPENVINO, "float[4] x", 'y, "", i = Unique <sorted = 0> (x)', 11, "runs"),
        (OPENVINO, "bool[2] c, bool[2] x", "y = Where (c, c, x)", 16, "does not run"),
        (OPENVINO, "bool[2] c, bool[2] x", "y = Where (c, x, x)", 16, "runs"),
        (OPENVINO, "bool[2] c, float[2] x", "y = Where (c, x, x)", 16, "runs"),
        (OPENVINO, CHANNELS.format(2, "[1]"), QLINEAR, 13, "does not run"),
        (OPENVINO, CHANNELS.format(1, "[1]"), QLINEAR, 13, "runs"),
        (OPENVINO, CHANNELS.format(2, ""), QLINEAR, 13, "runs"),
        (OPENVINO, "float[2] x", "b = Constant <value = bool[1] {0}> () y = NonZero (b)", 13, "may run"),
        (OPENVINO, "bool[2] b", "y = NonZero (b)", 13, "runs"),
        (OPENVINO, "float[4, 2] x", DFT.format(1), 17, "may run"),
        (OPENVINO, "float[4, 2] x", DFT.format(0), 17, "runs"),
        (TRACT, "float[2, 3] x, int64[1] k", "y, i = TopK (x, k) z = Abs (y)", 13, "runs"),
        (
            TRACT,
            "float[3, 3] x",
            "s = Shape (x) k = Constant <value = int64[1] {1}> () y, i = TopK (s, k)",
            13,
            "may run",
        ),
        (OPENVINO, "float[2, 4] x, float[4] s", GROUPS.format(1), 21, "runs"),
        (OPENVINO, "float[N, 4] x, float[4] s", GROUPS.format(1), 21, "does not run"),
        (OPENVINO, "float[N, 4, 2] x, float[4] s", GROUPS.format(1), 21, "runs"),
        (OPENVINO, "float[2, 4] x, float[4] s", GROUPS.format(16), 21, "does not run"),
        (
            TRACT,
            "float[2, 4] x, float[4] s",
            "y = LayerNormalization <stash_type = 16> (x, s)",
            17,
            "does not run",
        ),
        (TRACT, "int64[3] x", "m = Mul (x, x) y = Cast <to = 1> (m)", 14, "does not run"),
        (TRACT, "int64[3] x, int64[3] z", "m = Mul (x, z) y = Cast <to = 1> (m)", 14, "runs"),
        (TRACT, "int32[3] x", "m = Mul (x, x) y = Cast <to = 1> (m)", 14, "runs"),
        (TRACT, "float[2, 3] x", "y = Slice <axes = [1], starts = [0], ends = [1]> (x)", 9, "runs"),
        (TRACT, "float[2, 3] x", "y = Slice <axes = [-1], starts = [0], ends = [1]> (x)", 9, "does not run"),
        (TRACT, "float[2, 3] x", "y = Slice <starts = [0], ends = [1]> (x)", 9, "may run"),
        (TRACT, "float[3] x", "y = Slice <starts = [0], ends = [1]> (x)", 9, "runs"),
        (OPENVINO, "float[1, 2, 3, 4] x", RESIZED.format("1, 3, 6, 8"), 13, "runs"),
        (OPENVINO, "float[1, 2, 3, 4] x", RESIZED.format("2, 2, 6, 8"), 13, "does not run"),
        (OPENVINO, "float[1, 2, 3, 4, 5] x", RESIZED.format("1, 3, 3, 4, 5"), 13, "does not run"),
        (OPENVINO, "float[0, 2] x", "y = Unique <axis = 1> (x)", 11, "does not run"),
        (OPENVINO, "float[0, 2] x", "y = Unique (x)", 11, "runs"),
        (OPENVINO, "float[0, 1, 4] x", "y = MaxPool <kernel_shape = [2]> (x)", 13, "does not run"),
        (OPENVINO, "float[N, 1, 4] x", "y = MaxPool <kernel_shape = [2]> (x)", 13, "runs"),
        (
            OPENVINO,
            "float[2] x",
            "i = Constant <value = int64[0] {}> () y = Gather (x, i)",
            13,
            "does not run",
        ),
        (OPENVINO, "float[1, 2, 1, 2] x, float[1, 2, 1] c", "y = RotaryEmbedding (x, c, c)", 23, "runs"),
        (
            OPENVINO,
            "float[1, 2, 1, 2] x, float[1, 2, N] c",
            "y = RotaryEmbedding (x, c, c)",
            23,
            "does not run",
        ),
        (TRACT, "float[1, 1, 5] x", POOLED.format("MaxPool", 1, "VALID"), 13, "may run"),
        (TRACT, "float[1, 1, 5] x", POOLED.format("AveragePool", 1, "NOTSET"), 13, "runs"),
        (TRACT, "float[1, 1, 5] x", POOLED.format("AveragePool", 0, "VALID"), 13, "runs"),
        (TRACT, "float[0, 3] x", "y = LpNormalization (x)", 13, "may run"),
        (TRACT, "float[3, 1, 3] x, float[1, 2, 2] r", RNN.format("x"), 14, "runs"),
        (TRACT, "float[1, 2, 2] r", RNN.format("c"), 14, "may run"),
        (
            TRACT,
            "float[0, 2] x",
            "s = Constant <value = int64[2] {0, -1}> () y = Reshape (x, s)",
            13,
            "may run",
        ),
        (TRACT, "float[0, 2] x", "s = Constant <value = int64[2] {2, 0}> () y = Reshape (x, s)", 13, "runs"),
        (LATEST, "float[0, 1] x, int64[1] n", "y = ReverseSequence (x, n)", 13, "may run"),
        (LATEST, "float[2, 1] x, int64[1] n", "y = ReverseSequence (x, n)", 13, "runs"),
        (LATEST, "float[1, 2, 3, 4] x", RESIZED.format("1, 2, 6, 8"), 13, "runs"),
        (LATEST, "float[1, 2, 3, 4] x", RESIZED.format("2, 2, 6, 8"), 13, "does not run"),
        (LATEST, "float[N, 2, 3, 4] x", RESIZED.format("2, 2, 6, 8"), 13, "runs"),
        (LATEST, "float[1, 2, 3, 4, 5] x", RESIZED.format("1, 3, 3, 4, 5"), 13, "does not run"),
        (
            LATEST,
            "float[1, 2, 3, 4] x, int64[4] s",
            'y = Resize <mode = "linear"> (x, "", "", s)',
            13,
            "may run",
        ),
        (LATEST, "float[1, 2, 3, 4] x, int64[4] s", 'y = Resize (x, "", "", s)', 13, "runs"),
        (TRACT, "float[3] x", PADDED.format("0, 1", "constant"), 13, "runs"),
        (TRACT, "float[3] x", PADDED.format("0, -1", "constant"), 13, "does not run"),
        (TRACT, "float[3] x", PADDED.format("0, 99", "constant"), 13, "runs"),
        (TRACT, "float[0, 3] x", "y = ReduceMean (x)", 13, "wrong"),
        (TRACT, "float[2, 3] x", "y = ReduceMean (x)", 13, "runs"),
        (TRACT, "float[2] x", "s = Shape (x) y = ConstantOfShape (s)", 13, "does not run"),
        (TRACT, "float[2] x", "s = Shape (x) y = ConstantOfShape <value = float[1] {1.0}> (s)", 13, "runs"),
        (TRACT, "float[1, 1, 1, 2] x, float[1, 1, 1] c", "y = RotaryEmbedding (x, c, c)", 23, "may run"),
        (
            TRACT,
            "float[1, 1, 1, 2] x, float[1, 1, 1] c, float[1, 1, 1] s",
            "y = RotaryEmbedding (x, c, s)",
            23,
            "runs",
        ),
        (OLD, "float[2, 1] x, float[1] s", "y = RMSNormalization (x, s)", 23, "does not run"),
        (OLD, "float[2, 3] x, float[3] s", "y = RMSNormalization (x, s)", 23, "runs"),
        (LATEST, "float[2, 1] x, float[1] s", "y = RMSNormalization (x, s)", 23, "runs"),
        (OLD, "float[0, 3] x", NOTHING.format("Add"), 13, "may run"),
        (OLD, "float[0, 3] x", NOTHING.format("Div"), 13, "may run"),
        (OLD, "float[0, 3] x", NOTHING.format("Min"), 13, "runs"),
        (LATEST, "float[0, 3] x", NOTHING.format("Add"), 13, "runs"),
        (LATEST, "float[3] x", PADDED.format("0, -1", "edge"), 13, "may run"),
        (LATEST, "float[3] x", PADDED.format("0, -1", "constant"), 13, "runs"),
        (OLD, "float[3] x", PADDED.format("0, -1", "edge"), 13, "runs"),
        (LATEST, "float[3] x", AXES.format("int32"), 18, "does not run"),
        (LATEST, "float[3] x", AXES.format("int64"), 18, "runs"),
        (OLD, "float[3] x, int32[1] a", AXES.format("int64").replace("a = ", "b = "), 18, "runs"),
        (OPENVINO, "float[2, 2] x", 'y = Einsum <equation = "ii"> (x)', 13, "may run"),
        (OPENVINO, "float[2] x", 'y = Einsum <equation = "i,i"> (x, x)', 13, "runs"),
        (OPENVINO, "int64 n, bool c, float[2] x", LOOP.format("[2]"), 16, "runs"),
        (OPENVINO, "int64 n, bool c, float[2] x", LOOP.format("[]"), 16, "may run"),
        (OPENVINO, QUANTIZED_DATA, QLINEAR, 13, "runs"),
        (
            OPENVINO,
            QUANTIZED_DATA.replace("] x", "] u"),
            f"x = Constant <value = uint8[1, 1, 2] {{1, 2}}> () {QLINEAR}",
            13,
            "may run",
        ),
        (OPENVINO, SCALES.format("2, 4", "4"), QUANTIZE, 13, "runs"),
        (OPENVINO, SCALES.format("2, 4", "N"), QUANTIZE, 13, "does not run"),
        (OPENVINO, SCALES.format("2, N", "N"), QUANTIZE, 13, "runs"),
        (OPENVINO, SCALES.format("2, 4", "4").replace("8[4]", "8[N]"), QUANTIZE, 13, "does not run"),
        (OPENVINO, SCALES.format("N", "1"), QUANTIZE, 13, "runs"),
        (OPENVINO, SCALES.format("N", "M"), QUANTIZE, 13, "does not run"),
        (OPENVINO, SCALES.format("N", "1").replace("8[4]", "8[M]"), QUANTIZE, 13, "does not run"),
        (OPENVINO, "float[3, 3, 3, 3] x", SCALED.format("1.3, 1, 1, 2"), 10, "may run"),
        (OPENVINO, "float[3, 3, 3, 3] x", SCALED.format("1, 1, 2, 2"), 10, "runs"),
        (OPENVINO, "float[2, 3] x, int32[0, 1] i", "y = Gather (x, i)", 13, "does not run"),
        (OPENVINO, "float[2, 3] x, int32[2, 1] i", "y = Gather (x, i)", 13, "runs"),
        (TRACT, "double[1] x", SCALED_PRODUCT.format(0.5), 13, "does not run"),
        (TRACT, "double[1] x", SCALED_PRODUCT.format(1.0), 13, "runs"),
        (TRACT, "float[1, 2, 3] x", RECURRENT.format(1, "forward", 1), 14, "runs"),
        (TRACT, "float[1, 2, 3] x", RECURRENT.format(0, "bidirectional", 2), 14, "runs"),
        (TRACT, "float[1, 2, 3] x", RECURRENT.format(1, "bidirectional", 2), 14, "does not run"),
        (OPENVINO, "float[1, 2, 3] x", RECURRENT.format(0, "forward", 1), 14, "runs"),
        (OPENVINO, "float[1, 2, 3] x", RECURRENT.format(1, "forward", 1), 14, "does not run"),
        (OPENVINO, "string[2] x", "h = Split <axis = 0> (x) y = Shape (h)", 13, "does not run"),
        (TRACT, "float16[1, 8, 1] x", STFT.format("float16"), 17, "does not run"),
        (TRACT, "float[1, 8, 1] x", STFT.format("float"), 17, "runs"),
        (TRACT, "float[1, 8, 6, 1] x", "y = DFT <axis = 1, onesided = 1> (x)", 17, "runs"),
        (TRACT, "float[1, 8, 6, 1] x", "y = DFT <axis = 2, onesided = 1> (x)", 17, "does not run"),
        (TRACT, "float[1, 8, 6, 1] x", DFT.format(0).replace("axis = 0", "axis = 2"), 17, "does not run"),
        (NAMELESS, "float[2, 3] x, float[2, 3] w", PAIRS, 17, "may run"),
        (NAMELESS, "float[2, 3] x, float[2, 3] w", PAIRS.replace("(w,", "(x,"), 17, "runs"),
        (OLD, "float[2, 3] x, float[2, 3] w", PAIRS, 17, "runs"),
        (OPENVINO, "float[1, B, 3] x", BATCH + WEIGHTS, 14, "does not run"),
        (OPENVINO, "float[T, 1, 3] x", BATCH + WEIGHTS, 14, "runs"),
        (OPENVINO, "float[1, B, 3] x, float[1, B, 2] c", WEIGHTS, 14, "runs"),
        (OPENVINO, "bool c, float[2] x", CAPTURED % "y", 18, "does not run"),
        (OPENVINO, "bool c, float[2] x", CAPTURED % "x", 18, "runs"),
        (OPENVINO, "string[2] x", "y = Identity (x)", 19, "does not run"),
        (OPENVINO, "string[1] x", "y = Concat <axis = 0> (x, x)", 13, "may run"),
        (OPENVINO, "float[2] x", COPIED.format("ReduceL1"), 18, "wrong"),
        (OPENVINO, "float[2] x", COPIED.format("ReduceMax"), 18, "runs"),
        (OPENVINO, "float[2, 1, 2, 2] x", "y = MeanVarianceNormalization (x)", 8, "wrong"),
        (OPENVINO, "float[1, 2, 2, 2] x", "y = MeanVarianceNormalization (x)", 8, "runs"),
        (OPENVINO, "float[0, 2] x, int64[1] i", "y = Gather <axis = 1> (x, i)", 13, "does not run"),
        (TRACT, "bool[2] x, bool v", PADDED.format("1, 0", "constant"), 13, "does not run"),
        (TRACT, "float[2] x", PADDED.format("1, 0", "constant"), 13, "runs"),
        (TRACT, "int64[2] x", "y = PRelu (x, x)", 16, "does not run"),
        (
            TRACT,
            "float[1, 1, 2, 2] x, float[1, 1, 1, 2] g",
            'y = GridSample <mode = "cubic"> (x, g)',
            20,
            "runs",
        ),
        (TRACT, "float[2, 0] x", "y = ReduceL2 <axes = [1]> (x)", 13, "may run"),
        (TRACT, "float[0, 2] x", "y = ReduceL2 <axes = [0]> (x)", 13, "runs"),
        (TRACT, "int64[2] x, int64[2] s", "y = PRelu (x, s)", 16, "runs"),
        (TRACT, "float[3] x", "y = Slice <axes = [0], starts = [1], ends = [0]> (x)", 9, "may run"),
        (TRACT, "float[0, 2, 0] x", POOLED.format("AveragePool", 0, "NOTSET"), 13, "may run"),
        (TRACT, "float[2] x", RANGE.format(4, 1), 13, "runs"),
        (TRACT, "float[2] x", RANGE.format(4, -1), 13, "does not run"),
        (TRACT, "float[2] x", RANGE.format(-4, -1), 13, "may run"),
        (TRACT, "float[2] x", RANGE.format(-4, 1), 13, "does not run"),
        (OPENVINO, "float[2, 3] x", LARGEST.format(0), 13, "does not run"),
        (OPENVINO, "float[2, 3] x", LARGEST.format(1), 13, "runs"),
        (OPENVINO, "float[2, 3] x, int64[1] k", "y, i = TopK (x, k)", 13, "runs"),
        (
            LATEST,
            "float[2, 3, 4] x, int64[N] a",
            PADDED.format("1, 0", "constant").replace("(x, p", "(x, p, , a"),
            18,
            "runs",
        ),
        (
            LATEST,
            "float[2, 3, 4] x, int64[] a",
            PADDED.format("1, 0", "constant").replace("(x, p", "(x, p, , a"),
            18,
            "does not run",
        ),
    ],
)
def test_predicts_measured_nodes(runtime: str, inputs: str, nodes: str, opset: int, verdict: str) -> None:
    support = support_of(model_of_nodes(inputs, nodes, opset), runtime)
    found = "may run" if support.uncertain else "wrong" if support.wrong else "runs"
    assert ("does not run" if support.missing else found) == verdict


@pytest.mark.parametrize(
    ("runtime", "node", "opset", "warning"),
    [
        (OPENVINO, "Relu (x)", 14, "ai.onnx.Relu:14: NaN becomes 0"),
        (OPENVINO, "Exp (x)", 13, "ai.onnx.Exp:13: NaN becomes infinity"),
        (OPENVINO, "Clip (x)", 13, "ai.onnx.Clip:13: NaN may become a limit"),
        (OPENVINO, "Cast <to = 9> (x)", 13, "ai.onnx.Cast:13: NaN becomes false"),
        (OPENVINO, "Cast <to = 6> (x)", 13, ""),
        (OPENVINO, "Mul (x, x)", 14, ""),
        (TRACT, "ReduceLogSumExp (x)", 13, "ai.onnx.ReduceLogSumExp:13: large elements become infinity"),
        (OPENVINO, "MaxPool <kernel_shape = [1]> (x)", 13, f"ai.onnx.MaxPool:12: {MAXIMUM}"),
        (TRACT, "GlobalMaxPool (x)", 13, f"ai.onnx.GlobalMaxPool:1: {MAXIMUM}"),
        (TRACT, "Softplus (x)", 13, "ai.onnx.Softplus:1: large elements become infinity"),
        (
            LATEST,
            "GlobalMaxPool (x)",
            13,
            "ai.onnx.GlobalMaxPool:1: -infinity becomes the smallest finite float",
        ),
        (LATEST, "Relu (x)", 14, ""),
        (LATEST, "MaxPool <kernel_shape = [1]> (x)", 13, ""),
        (OPENVINO, "Abs (x)", 13, ""),
    ],
)
def test_warns_about_infinities_and_nan(runtime: str, node: str, opset: int, warning: str) -> None:
    support = support_of(model_of_nodes("float[1, 1, 3] x", f"y = {node}", opset), runtime)
    assert support.warnings == ((warning,) if warning else ())
    assert support.wrong == ()


@pytest.mark.parametrize("runtime", [OPENVINO, TRACT])
def test_warns_about_quantized_infinities(runtime: str) -> None:
    model = model_of_nodes("float[3] x", "q, s, z = DynamicQuantizeLinear (x) y = Cast <to = 1> (q)", 13)
    reason = "data with infinity or NaN may get other numbers than in onnxruntime"
    assert f"ai.onnx.DynamicQuantizeLinear:11: {reason}" in support_of(model, runtime).warnings


@pytest.mark.parametrize(("element_type", "is_wrong"), [("float16", True), ("float", False)])
def test_warns_about_sums_in_float16(element_type: str, *, is_wrong: bool) -> None:
    model = model_of_nodes(f"{element_type}[1, 4, 2] x", "h = LRN <size = 3> (x) y = Cast <to = 1> (h)", 13)
    assert bool(support_of(model, TRACT).warnings) == is_wrong


@pytest.mark.parametrize(("scale", "is_copied"), [("1.3", True), ("1.0", False), ("2.0", False)])
def test_warns_about_data_that_are_copied_instead_of_scaled(scale: str, *, is_copied: bool) -> None:
    scales = f"s = Constant <value = float[2] {{{scale}, 1.0}}> ()"
    model = model_of_nodes("float[3, 1] x", f'{scales} y = Resize (x, "", s)', 13)
    assert bool(support_of(model, OPENVINO).warnings) == is_copied
    assert bool(support_of(model, LATEST).warnings) == (scale != "1.0")


@pytest.mark.parametrize(
    ("runtime", "pads", "is_wrong"), [(OLD, "-3, 2", True), (OLD, "0, 2", False), (LATEST, "-3, 2", False)]
)
def test_warns_about_pads_that_remove_all_elements(runtime: str, pads: str, *, is_wrong: bool) -> None:
    model = model_of_nodes("float[3] x", PADDED.format(pads, "constant"), 13)
    assert bool(support_of(model, runtime).warnings) == is_wrong


def test_warns_about_types_of_inputs_that_no_node_reads() -> None:
    (warning,) = support_of(model_of_nodes("string[1] s, float[2] x", "y = Abs (x)", 13), TRACT).warnings
    assert warning.startswith("string: ")


@pytest.mark.parametrize(
    ("runtime", "element_type", "field", "is_read"),
    [
        (TRACT, "UINT32", "uint64_data", False),
        (TRACT, "INT32", "int32_data", True),
        (OPENVINO, "UINT32", "uint64_data", False),
        (OPENVINO, "UINT64", "uint64_data", True),
        (OPENVINO, "BFLOAT16", "int32_data", False),
    ],
)
def test_fit_stores_constants_as_raw_bytes(
    runtime: str, element_type: str, field: str, *, is_read: bool
) -> None:
    number = onnx.TensorProto.DataType.Value(element_type)
    tensor = onnx.helper.make_tensor("c", number, [2], [1, 3])
    model = model_of_nodes("float[2] x", "k = Identity (c) y = Cast <to = 1> (k)", 13)
    model.graph.initializer.append(tensor)
    assert bool(getattr(tensor, field))
    assert any("raw bytes" in each.reason for each in support_of(model, runtime).missing) != is_read
    fitted = fit(model, runtime).model
    assert support_of(fitted, runtime).missing == ()
    (found,) = (each for each in fitted.graph.initializer if each.name == "c")
    assert bool(found.raw_data) != is_read
    assert onnx.numpy_helper.to_array(found).astype(float).tolist() == [1, 3]


def test_fit_names_nodes_from_which_an_optimizer_derives_names() -> None:
    model = model_of_nodes("float[2, 3] x, float[2, 3] w", PAIRS, 17)
    model.graph.node.add(op_type="Abs", name="Gather_1", input=["x"], output=["unused"])
    fitted = fit(model, NAMELESS)
    assert fitted.report.uncertain == ()
    names = [each.name for each in fitted.model.graph.node if each.op_type == "Gather"]
    assert len(set(names)) == 4
    assert all(names)
    assert not any(each.name for each in fit(model, OLD).model.graph.node if each.op_type == "Gather")
