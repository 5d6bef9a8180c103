"""Results that releases of onnxruntime compute differently from the definitions; all were measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator
from support.runtimes import model_of_nodes, support_of, verdict_of

from opshift import fit
from random_graphs.execution import run_in_onnxruntime

INSTALLED = f"onnxruntime-{onnxruntime.__version__}"
NEWEST, LATEST, OLD = "onnxruntime-1.32.0", "onnxruntime-1.31.1", "onnxruntime-1.23.2"
OLDEST, ANCIENT = "onnxruntime-1.20.1", "onnxruntime-1.18.1"

SCALES = "s = Constant <value = float {0.25}> () z = Constant <value = int8 {0}> ()"
RESULT = " u = Constant <value = float {{{0}}}> () v = Constant <value = int8 {{{1}}}> () "
QUANTIZED = " q = com.microsoft.QLinearSoftmax <opset = 13, axis = 1> (x, s, z, {0}) y = Cast <to = 1> (q)"
ROWS = "int8[2, 3] x"
POOLED = "y = {0} <kernel_shape = [2, 1], strides = [2, {1}], ceil_mode = {2}> (x)"
IMAGE = "float[1, 2, 5, 6] x"
REDUCED = "r = {0} (x) y = Cast <to = 1> (r)"
RATIO = "k = Constant <value = float {0.5}> () "
HALF = "q = QuantizeLinear (x, s, z) y = Cast <to = 1> (q)"
HALF_BLOCKS = "q = QuantizeLinear <axis = 0, block_size = 2> (x, s, z) y = Cast <to = 1> (q)"
CLIPPED = """
    l = Constant <value = {0} {{1}}> () r = Relu (x) c = Clip (r, l) y = Cast <to = 1> (c)
"""
PADDED = """
    q = Constant <value = int64[8] {{0, 0, 1, 1, 0, 0, 1, {0}}}> () v = Constant <value = float {{{1}}}> ()
    p = Pad ({2}, q, v) y = {3} <kernel_shape = [2, 2]> (p)
"""
NORMALIZED = """
    w = Constant <value = float[3, 2] {{1, 2, 3, 4, 5, 6}}> () s = Constant <value = float[2] {{1, 2}}> ()
    k = Constant <value_ints = [2, 2, 2]> () l = Constant <value_ints = [-1, 2]> ()
    m = MatMul (x, w) {0} y = BatchNormalization ({1}, s, s, s, s)
"""
PADDED_AXIS = """
    q = Constant <value_ints = [1, 1]> () a = Constant <value_ints = [1]> ()
    t = Transpose (x) p = Pad (t, q, "", a)
"""
REGIONS = "float[1, 1, 4, 4] x, float[2, 4] r, int32[2] i, int32[2] n"
MOVED = "k = Constant <value = float {{0.5}}> () d = {0} r = Squeeze (d) y = Neg (r)"
CONSTANT = "x = Constant <value = int8[2, 1] {3, -7}> () z = Constant <value = int8 {0}> () "
ATTENDED = "float[1, 3, 2] x, int32[5] m, float[1, 2, 3, 1] p"
ATTENTION = """
    y, k, v = com.microsoft.MultiHeadAttention <num_heads = 2, unidirectional = {0}>
        (x, x, x, "", m, "", p, p)
"""
EMPTY = "float[2, 0] a, float[0, 3] b, float[3] c"
PRODUCT = "y = Gemm <beta = {0}> (a, b, c)"
DROPPED = "float[3] x, float c"
CAST_RATIO = "k = Constant <value = double {0.5}> () r = Cast <to = 1> (k) "


def _model(inputs: str, nodes: str, opset: int) -> onnx.ModelProto:
    model = model_of_nodes(inputs, nodes, opset)
    model.opset_import.add(domain="com.microsoft", version=1)
    return model


@pytest.mark.parametrize(
    ("runtime", "inputs", "nodes", "opset", "verdict"),
    [
        (OLD, ROWS, SCALES + RESULT.format(0.0031, 61) + QUANTIZED.format("u, v"), 13, "warns"),
        (OLD, ROWS, SCALES + RESULT.format(0.00390625, -128) + QUANTIZED.format("u, v"), 13, "warns"),
        (OLD, ROWS, SCALES + RESULT.format(0.003921569, -128) + QUANTIZED.format("u, v"), 13, "runs"),
        (OLD, f"{ROWS}, float u, int8 v", SCALES + QUANTIZED.format("u, v"), 13, "warns"),
        (LATEST, ROWS, SCALES + RESULT.format(0.0031, 61) + QUANTIZED.format("u, v"), 13, "runs"),
        (OLDEST, IMAGE, POOLED.format("AveragePool", 2, 1), 12, "warns"),
        (OLDEST, IMAGE, POOLED.format("AveragePool", 1, 1), 12, "runs"),
        (OLDEST, IMAGE, POOLED.format("AveragePool", 2, 0), 12, "runs"),
        (OLDEST, IMAGE, POOLED.format("MaxPool", 2, 1), 12, "warns"),
        (OLDEST, IMAGE, POOLED.format("LpPool", 2, 1), 18, "warns"),
        (OLD, IMAGE, POOLED.format("AveragePool", 2, 1), 12, "runs"),
        (OLD, "int64[N] x", REDUCED.format("ReduceSum"), 13, "runs"),
        (LATEST, "int64[N] x", REDUCED.format("ReduceSum"), 13, "warns"),
        (LATEST, "int64[N] x", REDUCED.format("ReduceL1"), 18, "warns"),
        (
            LATEST,
            "int32[N] x",
            "i = Cast <to = 7> (x) " + REDUCED.format("ReduceProd").replace("x", "i"),
            13,
            "warns",
        ),
        (LATEST, "int32[N] x", REDUCED.format("ReduceSum"), 13, "runs"),
        (LATEST, "int64[N] x", REDUCED.format('Einsum <equation = "i->">'), 13, "warns"),
        (OLD, "int64[N] x, int64 e", "r = Pow (x, e) y = Cast <to = 1> (r)", 13, "warns"),
        (
            OLD,
            "int64[N] x",
            "e = Constant <value_int = 2> () r = Pow (x, e) y = Cast <to = 1> (r)",
            13,
            "runs",
        ),
        (LATEST, "float[N, M] z", "x = Shape (z) " + REDUCED.format("ReduceProd"), 13, "runs"),
        (OLDEST, DROPPED, CAST_RATIO + "d = Dropout (x, r) y = Neg (d)", 13, "warns"),
        (OLD, DROPPED, CAST_RATIO + "d = Dropout (x, r) y = Neg (d)", 22, "runs"),
        (LATEST, DROPPED, CAST_RATIO + "d = Dropout (x, r) y = Neg (d)", 22, "warns"),
        (LATEST, DROPPED, "r = Abs (c) d = Dropout (x, r) y = Neg (d)", 13, "warns"),
        (LATEST, DROPPED, "d = Dropout (x, c) y = Neg (d)", 13, "runs"),
        (LATEST, DROPPED, RATIO + "d = Dropout (x, k) y = Neg (d)", 13, "runs"),
        (LATEST, DROPPED, CAST_RATIO + "n = Neg (x) d = Dropout (n, r) y = Neg (d)", 13, "runs"),
        (
            LATEST,
            "double[3] x",
            CAST_RATIO + "d = Dropout (x, r) y = Cast <to = 1> (d)",
            13,
            "does not run",
        ),
        (OLDEST, IMAGE, PADDED.format(1, 0, "x", "MaxPool"), 13, "warns"),
        (OLDEST, IMAGE, PADDED.format(1, 0, "x", "AveragePool"), 13, "warns"),
        (OLDEST, IMAGE, PADDED.format(1, 0, "x", "MaxPool"), 21, "runs"),
        (LATEST, IMAGE, PADDED.format(1, 0, "x", "MaxPool"), 21, "warns"),
        (LATEST, IMAGE, PADDED.format(1, 0, "x", "AveragePool"), 21, "runs"),
        (LATEST, IMAGE, PADDED.format(1, -1, "x", "MaxPool"), 13, "runs"),
        (LATEST, IMAGE, PADDED.format(-1, 0, "x", "MaxPool"), 13, "runs"),
        (LATEST, IMAGE, "r = Relu (x) " + PADDED.format(1, 0, "r", "MaxPool"), 13, "runs"),
        (NEWEST, IMAGE, PADDED.format(1, 0, "x", "MaxPool"), 21, "runs"),
        (OLDEST, "float[1, 4, 3] x", NORMALIZED.format("", "m"), 15, "does not run"),
        (OLD, "float[1, 4, 3] x", NORMALIZED.format("", "m"), 15, "runs"),
        (OLD, "float[4, 3] x", NORMALIZED.format("", "m"), 15, "runs"),
        (OLD, "float[4, 3] x", NORMALIZED.format("r = Reshape (m, k)", "r"), 15, "warns"),
        (OLD, "float[4, 3] x", NORMALIZED.format("r = Reshape (m, k)", "r"), 21, "runs"),
        (LATEST, "float[4, 3] x", NORMALIZED.format("r = Reshape (m, k)", "r"), 21, "warns"),
        (LATEST, "float[4, 3] x", NORMALIZED.format("r = Reshape (m, l)", "r"), 15, "runs"),
        (LATEST, "float[2, 3] x", NORMALIZED.format("t = Transpose (m)", "t"), 15, "warns"),
        (NEWEST, "float[4, 3] x", NORMALIZED.format("r = Reshape (m, k)", "r"), 21, "runs"),
        (LATEST, "float[2, 3] x", PADDED_AXIS + "y = Transpose (p)", 18, "does not run"),
        (LATEST, "float[2, 3] x", PADDED_AXIS + "y = Neg (p)", 18, "may run"),
        (OLDEST, "double[2] x", "e = Exp (x) y = Cast <to = 1> (e)", 13, "warns"),
        (OLD, "double[2] x", "e = Exp (x) y = Cast <to = 1> (e)", 13, "runs"),
        (OLD, "float[2, 3] x", "y = ReduceLogSumExp (x)", 13, "warns"),
        (OLD, "float[3] x", "y = ReduceLogSumExp <axes = [0]> (x)", 13, "warns"),
        (OLD, "float[2, 3] x", "y = ReduceLogSumExp <axes = [0]> (x)", 13, "runs"),
        (OLD, "float[2, 3] x", "y = ReduceLogSumExp (x)", 18, "warns"),
        (LATEST, "float[2, 3] x", "y = ReduceLogSumExp (x)", 18, "runs"),
        (OLD, REGIONS, "y = com.microsoft.CropAndResize (x, r, i, n)", 13, "warns"),
        (LATEST, REGIONS, "y = com.microsoft.CropAndResize (x, r, i, n)", 13, "runs"),
        (ANCIENT, "int8[2, 1] x", MOVED.format("DequantizeLinear (x, k)"), 13, "warns"),
        (ANCIENT, "int8[2, 1] x", MOVED.format("DequantizeLinear (x, k)"), 21, "runs"),
        (OLD, "int8[2, 1] x", MOVED.format("DequantizeLinear (x, k)"), 21, "warns"),
        (OLD, "uint8[2, 1] x", MOVED.format("DequantizeLinear (x, k)"), 21, "runs"),
        (OLD, "int8[2, 1] x, int8 z", MOVED.format("DequantizeLinear (x, k, z)"), 21, "runs"),
        (OLD, "int32[2, 1] x, int32 z", MOVED.format("DequantizeLinear (x, k, z)"), 13, "does not run"),
        (LATEST, "int8[2, 1] x", MOVED.format("DequantizeLinear (x, k)"), 13, "warns"),
        (LATEST, "int8[2, 1] x", MOVED.format("DequantizeLinear (x, k)"), 21, "runs"),
        (LATEST, "int8[2, 1] x", MOVED.format("com.microsoft.DequantizeLinear (x, k)"), 13, "warns"),
        (OLD, "float[2] a", CONSTANT + MOVED.format("DequantizeLinear (x, k)"), 13, "warns"),
        (LATEST, "float[2] a", CONSTANT + MOVED.format("DequantizeLinear (x, k)"), 13, "runs"),
        (OLD, "float[2] a", CONSTANT + MOVED.format("DequantizeLinear (x, k, z)"), 13, "runs"),
        (OLD, ATTENDED, ATTENTION.format(1), 13, "warns"),
        (OLD, ATTENDED, ATTENTION.format(0), 13, "runs"),
        (LATEST, ATTENDED, ATTENTION.format(1), 13, "runs"),
        (OLD, "float16[4] x, float16 s, int8 z", HALF, 19, "warns"),
        (OLD, "float16[4] x, float16 s, uint8 z", HALF, 21, "warns"),
        (OLD, "float16[4] x, float16[2] s, int8[2] z", HALF_BLOCKS, 21, "runs"),
        (OLD, "float[4] x, float s, int8 z", HALF, 21, "runs"),
        (LATEST, "float16[4] x, float16 s, int8 z", HALF, 21, "runs"),
        (ANCIENT, EMPTY, PRODUCT.format(1.0), 13, "does not run"),
        (ANCIENT, "float[2, 4] a, float[4, 3] b, float[3] c", PRODUCT.format(1.0), 13, "runs"),
        (OLDEST, EMPTY, PRODUCT.format(1.0), 13, "runs"),
        (LATEST, EMPTY, PRODUCT.format(2.0), 13, "warns"),
        (NEWEST, EMPTY, PRODUCT.format(2.0), 13, "runs"),
        (OLD, "double[3] x", CLIPPED.format("double"), 13, "does not run"),
        (LATEST, "double[3] x", CLIPPED.format("double"), 13, "does not run"),
        (LATEST, "int8[3] x", CLIPPED.format("int8"), 14, "does not run"),
        (LATEST, "float[3] x", CLIPPED.format("float"), 13, "runs"),
        (LATEST, "double[3] x, double l", "r = Relu (x) c = Clip (r, l) y = Cast <to = 1> (c)", 13, "runs"),
    ],
)
def test_predicts_measured_faults(runtime: str, inputs: str, nodes: str, opset: int, verdict: str) -> None:
    assert verdict_of(_model(inputs, nodes, opset), runtime) == verdict


def _run(model: onnx.ModelProto, feeds: dict[str, Any]) -> np.ndarray[Any, Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feeds)[0])


def test_fit_replaces_quantized_data_that_become_uint8() -> None:
    model = _model("int8[2, 1] x", MOVED.format("DequantizeLinear (x, k)"), 13)
    feeds = {"x": np.array([[3], [-7]], np.int8)}
    (expected,) = run_in_onnxruntime(model, feeds)
    assert not np.array_equal(_run(model, feeds), expected)
    assert np.array_equal(_run(fit(model, INSTALLED).model, feeds), expected)


@pytest.mark.parametrize("nodes", [CAST_RATIO, "r = Abs (c) "], ids=["constant ratio", "fed ratio"])
def test_fit_replaces_dropout_that_returns_its_ratio(nodes: str) -> None:
    model = _model(DROPPED, f"{nodes}d = Dropout (x, r) y = Neg (d)", 13)
    feeds = {"x": np.arange(3, dtype=np.float32), "c": np.array(0.5, np.float32)}
    expected = ReferenceEvaluator(model).run(None, feeds)[0]
    assert not np.array_equal(_run(model, feeds), expected)
    assert np.array_equal(_run(fit(model, INSTALLED).model, feeds), expected)


@pytest.mark.skipif(INSTALLED == NEWEST, reason="the optimizer of this release keeps the axis")
@pytest.mark.parametrize("nodes", ["r = Reshape (m, k)", "r = Transpose (m)"], ids=["Reshape", "Transpose"])
def test_fit_replaces_batch_normalization_of_a_wrong_axis(nodes: str) -> None:
    model = _model("float[N, 3] x", NORMALIZED.format(nodes, "r"), 15)
    rows = 4 if "Reshape" in nodes else 2
    feeds = {"x": np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)}
    (expected,) = run_in_onnxruntime(model, feeds)
    assert not np.allclose(_run(model, feeds), expected)
    assert np.allclose(_run(fit(model, INSTALLED).model, feeds), expected, rtol=1e-5)


def test_warns_about_int64_sums_that_are_rounded() -> None:
    model = _model("int64[2] x", "y = ReduceSum (x)", 13)
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    feeds = {"x": np.array([2**60, 1])}
    assert run_in_onnxruntime(model, feeds)[0] == 2**60
    assert any("rounded as double" in each for each in support_of(model, INSTALLED).warnings)


WEIGHTS = """
    w = Constant <value = uint8[1, 1, 8] {{1, 35, 69, 103, 137, 171, 205, 239}}> ()
    s = Constant <value = float[1] {{0.5}}> () {0}
    y = com.microsoft.MatMulNBits <K = 16, N = 1, bits = 4, block_size = 16, accuracy_level = {1}>
        (x, w, s, z)
"""


@pytest.mark.parametrize("level", [1, 4])
@pytest.mark.parametrize("zero", ["", "z = Constant <value = uint8[1] {3}> ()"], ids=["fed", "constant"])
def test_predicts_zero_points_that_are_not_read(zero: str, level: int) -> None:
    model = _model(
        "float[1, 16] x" if zero else "float[1, 16] x, uint8[1] z", WEIGHTS.format(zero, level), 17
    )
    feeds = {"x": np.ones((1, 16), np.float32), "z": np.array([3], np.uint8)}
    result = _run(model, {each.name: feeds[each.name] for each in model.graph.input})
    codes = [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14]
    is_wrong = not np.allclose(result, sum(codes) * 0.5 - 16 * 3 * 0.5, rtol=0.02)
    assert (verdict_of(model, INSTALLED) == "warns") == is_wrong == (level == 4 and not zero)


TRAINED = """
    s = Constant <value = float[2] {{1, 2}}> () v = Constant <value = float[2] {{4, 5}}> () {0}
    n, a, b = BatchNormalization <training_mode = 1> (x, s, s, m, v) c = Add (a, b) y = Neg (c)
"""


def test_says_that_a_training_may_overwrite_constants() -> None:
    inputs = "float[1, 2, 1] x"
    model = _model(inputs, TRAINED.format("m = Constant <value = float[2] {1, 2}> ()"), 15)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    first, second = (session.run(None, {"x": np.ones((1, 2, 1), np.float32)})[0] for _ in range(2))
    assert not np.allclose(first, second)
    assert "a constant `input_mean` may be overwritten" in str(support_of(model, INSTALLED).warnings)
    computed = _model(f"{inputs}, float[2] m", TRAINED.format(""), 15)
    assert "input_mean" not in str(support_of(computed, INSTALLED).warnings)


@pytest.mark.parametrize("runtime", [INSTALLED, OLDEST, "openvino-2026.4.1"])
@pytest.mark.parametrize(("outputs", "is_training"), [("y", False), ("y, m, v, a, b", True)])
def test_warns_about_old_trainings_alone(runtime: str, outputs: str, *, is_training: bool) -> None:
    constants = "s = Constant <value = float[2] {1, 2}> () w = Constant <value = float[2] {4, 9}> ()"
    model = _model("float[1, 2, 1] x", f"{constants} {outputs} = BatchNormalization (x, s, s, s, w)", 9)
    assert ("outputs of a training" in str(support_of(model, runtime).warnings)) == is_training
    x = np.ones((1, 2, 1), np.float32)
    (result,) = run_in_onnxruntime(model, {"x": x})[:1]
    scale, variance = np.array([[1], [2]]), np.array([[4], [9]])
    expected = (x - scale) / np.sqrt(variance) * scale + scale
    assert np.allclose(result, expected, rtol=1e-4) != is_training
