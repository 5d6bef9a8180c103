"""Results that OpenVINO and tract compute differently from the definitions, as executions have shown."""

from __future__ import annotations

import pytest
from support.runtimes import model_of_nodes, support_of

OPENVINO, TRACT = "openvino-2026.4.1", "tract-0.23.9"

QUOTIENT = "k = Constant <value_ints = [-1]> () l = Constant <value_ints = [2]> () y = Div (k, l)"
SHORT_QUOTIENT = (
    "k = Constant <value = int16 {{{}}}> () l = Constant <value = int16 {{{}}}> () y = Div (k, l)"
)
NUMBERS = """
    z = Constant <value_int = 0> () o = Constant <value_int = 1> () l = Constant <value_int = 4> ()
    r = Range (z, {0}, o) c = {1} (r, z) y = Where (c, o, z)
"""
SELECTION = "b = Abs (x) y = NonMaxSuppression (b, s{0})"
LIMITS = "m = Constant <value_ints = [{0}]> () t = Constant <value_floats = [{1}]> () "
BOXES = "float[1, 5, 4] x, float[1, 2, 5] s"
SIGNAL = "n = Constant <value_int = 4> () y = DFT (x, {0})"
TRANSPOSED = 'y = ConvTranspose <auto_pad = "{0}"> (x, w)'
POOLED = "y, i = MaxPool <kernel_shape = [2, 2], storage_order = {0}> (x)"
RESIZED = 's = Constant <value_floats = [1.0, 1.0, 2.0]> () y = Resize <mode = "{0}"> (x, "", s)'
GRID = "float[1, 2, 2, 2] g"
AFFINE = "y = AffineGrid <align_corners = {0}> (x, s)"
PRODUCT = "{0}[2, 2] a, float s, {0} z, {1}[2, 2] b, {1} w"
FACTORS = "y = QLinearMatMul (a, s, z, b, s, w, s, z)"
CHOSEN = """
    a = Abs (x) y = Neg (a) z = If (b) <then_branch = t () => (float[2] p) {{ p = Sin (x) }},
        else_branch = e () => (float[2] q) {{ q = Cos ({0}) }}>
"""
NOTHING = "s = Constant <value = int64[0] {}> ()"
REDUCED = 'y = Einsum <equation = "{0}"> (x)'
QUANTIZED = "s = Constant <value_float = 0.5> () z = Constant <value = {0}> () y = QuantizeLinear (x, s, z)"
INDEXED = 'y, i = MaxPool <kernel_shape = [3], auto_pad = "{0}"> (x)'
STASHED = "y = GroupNormalization <num_groups = 1, stash_type = {0}> (x, s, s)"
POWER = "k = Constant <value_float = {0}> () y = Pow (x, k)"
STRETCHED = 's = Constant <value_floats = [{0}]> () y = Resize (x, "", s)'


@pytest.mark.parametrize(
    ("runtime", "inputs", "nodes", "opset", "reason"),
    [
        (OPENVINO, "int64[1] x", QUOTIENT, 14, "rounded down"),
        (OPENVINO, "int64[1] x", SHORT_QUOTIENT.format(-5, 2), 14, "rounded down"),
        (OPENVINO, "int64[1] x", SHORT_QUOTIENT.format(5, -2), 14, "rounded down"),
        (OPENVINO, "int64[1] x", SHORT_QUOTIENT.format(5, 2), 14, ""),
        (OPENVINO, "uint8[1] x", "y = Div (x, x)", 14, "rounded to the nearest"),
        (OPENVINO, "int16[1] x", "y = Div (x, x)", 14, ""),
        (OPENVINO, "float x", "y = NonZero (x)", 13, "instead of [0, n]"),
        (OPENVINO, "float[1] z", "k = Constant <value_ints = [1]> () y = NonZero (k)", 13, "arbitrary"),
        (OPENVINO, "float[2] x", "y = NonZero (x)", 13, ""),
        (OPENVINO, BOXES, SELECTION.format(""), 11, "may suppress each other"),
        (
            OPENVINO,
            BOXES,
            LIMITS.format(1, "0.0") + SELECTION.format(", m, t"),
            11,
            "may suppress each other",
        ),
        (OPENVINO, BOXES, LIMITS.format(1, 0.5) + SELECTION.format(", m, t"), 11, ""),
        (OPENVINO, "float[1, 2, N] x, float[2, 1, 3] w", TRANSPOSED.format("SAME_UPPER"), 11, "SAME padding"),
        (OPENVINO, "float[1, 2, 4] x, float[2, 1, 3] w", TRANSPOSED.format("SAME_UPPER"), 11, ""),
        (OPENVINO, "float[1, 2, N] x, float[2, 1, 3] w", TRANSPOSED.format("NOTSET"), 11, ""),
        (OPENVINO, "int8[1, 1, 4, 4] x", POOLED.format(1), 12, "`storage_order` is ignored"),
        (OPENVINO, "int8[1, 1, 4, 4] x", POOLED.format(0), 12, ""),
        (OPENVINO, "int32[1, 1, 4] x", RESIZED.format("linear"), 13, "not rounded as in onnxruntime"),
        (OPENVINO, "int32[1, 1, 4] x", RESIZED.format("nearest"), 13, ""),
        (
            OPENVINO,
            f"int32[1, 1, 2, 2] x, {GRID}",
            "y = GridSample (x, g)",
            16,
            "not rounded as in onnxruntime",
        ),
        (OPENVINO, f"float[1, 1, 2, 2] x, {GRID}", "y = GridSample (x, g)", 16, ""),
        (OPENVINO, "float[1, 2, 3] x, int64[4] s", AFFINE.format(1), 20, "spatial sizes of 1"),
        (OPENVINO, "float[1, 2, 3] x, int64[4] s", AFFINE.format(0), 20, ""),
        (OPENVINO, "uint32[2] x", "y = Add (x, x)", 14, "uint32: computed in int32"),
        (OPENVINO, "int32[2] x", "y = ReduceSum (x)", 13, "integers are computed in float"),
        (OPENVINO, "float[3] x, bool[3] c", "y = Compress (x, c)", 11, "may have another rank"),
        (OPENVINO, "float[3] x, bool[3] c", "y = Compress <axis = 0> (x, c)", 11, ""),
        (OPENVINO, "float x", f"{NOTHING} y = Expand (x, s)", 13, "a scalar becomes a vector"),
        (OPENVINO, "float[1] x", f"{NOTHING} y = Expand (x, s)", 13, ""),
        (OPENVINO, "float[2] x", "y = LpNormalization (x)", 1, "added to the norm"),
        (OPENVINO, "float[4, 1] x, int64 n", "y = DFT (x, n)", 17, "a computed `dft_length`"),
        (
            TRACT,
            "float[2, 2, 4] x",
            "y = Attention <kv_num_heads = 1, q_num_heads = 1, right_window_size = 1> (x, x, x)",
            25,
            "are ignored",
        ),
        (OPENVINO, PRODUCT.format("uint8", "float8e4m3fn"), FACTORS, 21, "results in float8"),
        (OPENVINO, "float x, int64[0] s", "y = Expand (x, s)", 13, "a scalar becomes a vector"),
        (OPENVINO, "float[2] x, bool b", CHOSEN.format("y"), 13, "may replace those of the node"),
        (OPENVINO, "float[2] x, bool b", CHOSEN.format("a"), 13, ""),
        (OPENVINO, "float[A, B, C] x", "y = Flatten <axis = 2> (x)", 13, "data without elements"),
        (OPENVINO, "float[A, B, C] x", "y = Flatten (x)", 13, ""),
        (OPENVINO, "float[2] x", "y = ReduceLogSumExp (x)", 13, "infinities may be NaN"),
        (OPENVINO, "float[3] x, int64[1] k", "y, i = TopK (x, k)", 11, "equal elements"),
        (OPENVINO, "float[2] x", QUANTIZED.format("int8 {1}"), 13, "rounded to odd numbers"),
        (OPENVINO, "float[2] x", QUANTIZED.format("int8 {-128}"), 13, ""),
        (OPENVINO, PRODUCT.format("uint8", "uint8"), FACTORS, 10, "rounded to odd numbers"),
        (OPENVINO, "int8 x, float[1] s, int8[1] z", "y = DequantizeLinear (x, s, z)", 13, "a scalar `x`"),
        (OPENVINO, "int8 x, float s, int8 z", "y = DequantizeLinear (x, s, z)", 13, ""),
        (OPENVINO, "float[2] x", POWER.format(0.5), 13, "-infinity"),
        (OPENVINO, "float[2] x", POWER.format(2.0), 13, ""),
        (OPENVINO, "float[2] x", "y = Unique (x)", 11, "NaN may be sorted"),
        (OPENVINO, "float x", "r = RandomNormalLike (x) y = Shape (r)", 13, "a vector with one element"),
        (OPENVINO, "float[1] x", "r = RandomNormalLike (x) y = Shape (r)", 13, ""),
        (OPENVINO, "int64[2] x", "y, i = Unique <sorted = 0> (x)", 11, "`indices` may not be written"),
        (OPENVINO, "int64[2] x", "y, i = Unique (x)", 11, ""),
        (OPENVINO, "float[2] x", "y = Selu <alpha = 0.0> (x)", 6, "`alpha` of 0"),
        (OPENVINO, "int8[1, 1, N] x", INDEXED.format("SAME_UPPER"), 12, "with indices"),
        (OPENVINO, "int8[1, 1, N] x", INDEXED.format("VALID"), 12, ""),
        (OPENVINO, "int8[1, 1, 4] x", INDEXED.format("SAME_UPPER"), 12, ""),
        (OPENVINO, "float[2] x", "y = ArgMin (x)", 13, "NaN may be skipped"),
        (TRACT, "float[2] x", QUANTIZED.format("int8 {1}"), 13, "unless the zero point is 0"),
        (TRACT, "float[2] x", QUANTIZED.format("int8 {0}"), 13, ""),
        (TRACT, "float[2] x", "k = Constant <value_floats = [0.0]> () y = Mul (x, k)", 13, "is 0"),
        (TRACT, "float[2] x", "k = Constant <value_floats = [1.0]> () y = Mul (x, k)", 13, ""),
        (TRACT, "float[2] x", POWER.format(0.5), 13, "-infinity"),
        (TRACT, "float[3] x", STRETCHED.format(1.3), 13, "the ratio of the sizes"),
        (TRACT, "float[3] x", STRETCHED.format("2.0"), 13, ""),
        (TRACT, "float[2] x", "y = ArgMax (x)", 13, "NaN may be skipped"),
        (TRACT, "float[2, N] x", "y = Squeeze (x)", 13, "dimensions stay"),
        (TRACT, "float[1, 2, 2] x, float[2] s", STASHED.format(16), 21, "`stash_type` may be ignored"),
        (TRACT, "float[1, 2, 2] x, float[2] s", STASHED.format(1), 21, ""),
        (TRACT, "float[2, 1] x", "y = Squeeze (x)", 13, ""),
        (TRACT, "uint8[1, 1, 4, 4] x", POOLED.format(0), 12, "indices of windows"),
        (TRACT, "uint8[1, 1, 4, 4] x", "y = MaxPool <kernel_shape = [2, 2]> (x)", 12, ""),
        (TRACT, "int64 n", NUMBERS.format("n", "Greater"), 11, "comparisons of results of Range"),
        (TRACT, "int64 n", NUMBERS.format("l", "Greater"), 11, ""),
        (TRACT, "float[4, 1] x", SIGNAL.format("n"), 17, "`dft_length` is ignored"),
        (TRACT, "float[4, 1] x", SIGNAL.format('""'), 17, ""),
        (TRACT, BOXES, SELECTION.format(""), 11, "boxes are selected"),
        (TRACT, BOXES, LIMITS.format(0, 0.5) + SELECTION.format(", m, t"), 11, "boxes are selected"),
        (TRACT, BOXES, LIMITS.format(1, 0.5) + SELECTION.format(", m, t"), 11, ""),
        (TRACT, "float[2, 3] x", REDUCED.format("ij->"), 12, "a result without axes"),
        (TRACT, "float[2, 3] x", REDUCED.format("ij->i"), 12, ""),
        (TRACT, "int32[1, 1, 4] x", RESIZED.format("linear"), 13, "not rounded as in onnxruntime"),
        (TRACT, f"bool[1, 1, 2, 2] x, {GRID}", "y = GridSample (x, g)", 16, "not rounded as in onnxruntime"),
        (TRACT, "int32[2] x, float e", "y = Pow (x, e)", 13, "powers of integers"),
        (TRACT, "int32[2] x", "y = Shrink (x)", 9, "integers are rounded differently"),
    ],
)
def test_warns_about_wrong_results(runtime: str, inputs: str, nodes: str, opset: int, reason: str) -> None:
    warnings = support_of(model_of_nodes(inputs, nodes, opset), runtime).warnings
    assert any(reason in each for each in warnings) if reason else not warnings
