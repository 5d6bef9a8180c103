"""Nodes of com.microsoft that releases of onnxruntime refuse, or that end the process; all were measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from support.toy_runtime import model, toy_runtime

from opshift.model.files import model_of
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import get_runtime
from opshift.runtimes.check_support import RuntimeCheck, check_support
from opshift.runtimes.model_nodes import ModelNodes

FIXED, TYPED = {"when": {"fixed": ["k"]}}, {"when": {"typed_data": ["k"]}}

FUNCTIONS = """
<domain: "local", opset_import: ["": 20]> Triangle (a, k) => (c) { c = Trilu (a, k) }
<domain: "local", opset_import: ["": 20]> Part <v> (a) => (c) {
  k = Constant <value: tensor = @v> () c = Trilu (a, k)
}
"""


@pytest.mark.parametrize(
    ("restriction", "stored", "ir_version", "is_refused"),
    [
        (FIXED, "raw", 9, True),
        (FIXED, "typed", 9, True),
        (FIXED, "input", 9, False),
        (FIXED, "input", 3, True),  # callers cannot override initializers
        (FIXED, "computed", 9, True),
        (FIXED, "computed from input", 9, False),
        (FIXED, "", 9, False),
        (TYPED, "raw", 9, False),
        (TYPED, "typed", 9, True),
        (TYPED, "constant", 9, True),
        (TYPED, "sparse constant", 9, False),
        (TYPED, "constant of another domain", 9, False),
        (TYPED, "argument of a function", 9, False),
        (TYPED, "attribute of a function", 9, True),
        (TYPED, "reference without a function", 9, False),
        (TYPED, "computed", 9, False),
        (TYPED, "", 9, False),
    ],
)
def test_restriction_to_forms_of_constants(
    restriction: dict[str, Any], stored: str, ir_version: int, *, is_refused: bool
) -> None:
    runtime = toy_runtime(
        operators={
            **{f"ai.onnx.{each}": [{"versions": [1, 20]}] for each in ("Add", "Constant", "Neg", "Trilu")},
            "com.microsoft.Constant": [{"versions": [1, 1]}],
        },
        restrictions={"ai.onnx.Trilu": [{"reason": "a reason", **restriction}]},
    )
    nodes = {
        "constant": "k = Constant <value_int = 1> () y = Trilu (x, k)",
        "sparse constant": "k = Constant () y = Trilu (x, k)",
        "reference without a function": "k = Constant <value = int64 {1}> () y = Trilu (x, k)",
        "constant of another domain": "k = com.microsoft.Constant <value_int = 1> () y = Trilu (x, k)",
        "argument of a function": "c = Constant <value_int = 1> () y = local.Triangle (x, c)",
        "attribute of a function": "a = local.Part <v = int64 {1}> (x) b = local.Part <v = int64 {0}> (x) "
        "y = Add (a, b)",
        "computed": "c = Constant <value_int = 1> () k = Neg (c) y = Trilu (x, k)",
        "computed from input": "n = Neg (k) y = Trilu (x, n)",
    }
    is_input = stored in ("", "input", "computed from input")
    tested = model(
        nodes.get(stored, "y = Trilu (x, k)"),
        "float[2, 3] x, int64 k" if is_input else "float[2, 3] x",
        functions=FUNCTIONS if stored.endswith("of a function") else "",
    )
    tested.ir_version = ir_version
    if stored == "sparse constant":
        values = onnx.helper.make_tensor("", onnx.TensorProto.INT64, [1], [1])
        indices = onnx.helper.make_tensor("", onnx.TensorProto.INT64, [1], [0])
        sparse = onnx.helper.make_sparse_tensor(values, indices, [1])
        tested.graph.node[0].attribute.append(onnx.helper.make_attribute("sparse_value", sparse))
    elif stored == "reference without a function":
        value = tested.graph.node[0].attribute[0]
        value.ref_attr_name = "v"
        value.ClearField("t")
    if stored in ("raw", "input", "computed from input"):
        tested.graph.initializer.append(numpy_helper.from_array(np.array(1, np.int64), "k"))
    elif stored == "typed":
        tested.graph.initializer.add(name="k", data_type=onnx.TensorProto.INT64, int64_data=[1])
    assert bool(check_support(tested, runtime)) == is_refused


@pytest.mark.parametrize(
    ("condition", "shape", "axis", "is_refused"),
    [
        ({"single_from": {"input": "axis"}}, "2, 1", 1, True),
        ({"single_from": {"input": "axis"}}, "2, 1", 0, False),
        ({"single_from": {"input": "axis"}}, "2, 0, 3", 1, True),
        ({"single_from": {"input": "axis"}}, "N, 1", -1, True),
        ({"single_from": {"input": "axis"}}, "2, N", -1, False),
        ({"holds": ["size(input, 0) == 2 * size(input, 1)"]}, "4, 2", 0, True),
        ({"holds": ["size(input, 0) == 2 * size(input, 1)"]}, "4, 3", 0, False),
        ({"holds": ["size(input, 0) == 2 * size(input, 1)"]}, "4, N", 0, False),
        ({"holds": ["size(input, 0) == 4", "axis == 0"]}, "4, N", 0, True),
        ({"holds": ["size(input, 0) == 4", "axis == 0"]}, "4, N", 1, False),
    ],
)
def test_restriction_to_sizes(condition: dict[str, Any], shape: str, axis: int, *, is_refused: bool) -> None:
    runtime = toy_runtime(
        operators={"ai.onnx.Flatten": [{"versions": [1, 20]}]},
        restrictions={"ai.onnx.Flatten": [{"reason": "a reason", "when": condition}]},
    )
    tested = model(f"y = Flatten <axis = {axis}> (input)", f"float[{shape}] input")
    assert bool(check_support(tested, runtime)) == is_refused


def _verdict(inputs: str, nodes: str, runtime: str, initializers: str = "", opset: int = 17) -> str:
    result = "uint8" if "QLinear" in nodes else "float16" if "float16" in nodes else "float"
    parsed = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]> '
        f"g ({inputs}) => ({result}[] y) {initializers} {{ {nodes} }}"
    )
    found = ModelNodes(model_of(parsed.SerializeToString())[0], default_registry())
    support = RuntimeCheck(get_runtime(f"onnxruntime-{runtime}")).check(found)
    return "does not run" if support.missing else "may run" if support.uncertain else "runs"


EXPAND = "y = com.microsoft.ExpandDims (x, a)"
FOLDED = f"n = Constant <value = int32 {{0}}> () a = Neg (n) {EXPAND}"


@pytest.mark.parametrize(
    ("shape", "axis", "nodes", "verdicts"),
    [
        # releases 1.16.3, 1.23.2, 1.24.4 and 1.28.0
        ("2, 3", 0, EXPAND, ["runs", "runs", "runs", "runs"]),
        ("2, 3", -1, EXPAND, ["runs", "runs", "runs", "runs"]),
        ("2, 3", -2, EXPAND, ["does not run", "does not run", "does not run", "runs"]),
        ("2, 3", -3, EXPAND, ["does not run", "does not run", "does not run", "runs"]),
        ("", 0, EXPAND, ["runs", "runs", "runs", "runs"]),
        ("", -1, EXPAND, ["does not run", "does not run", "does not run", "runs"]),
        ("1, 1", 2, EXPAND, ["does not run", "does not run", "runs", "runs"]),
        ("1, 1", 1, EXPAND, ["runs", "runs", "runs", "runs"]),
        ("0, 2", 1, EXPAND, ["does not run", "does not run", "runs", "runs"]),
        ("0, 2", 0, EXPAND, ["runs", "runs", "runs", "runs"]),
        ("2, 3", None, EXPAND, ["runs", "runs", "runs", "runs"]),
        ("1, 1", None, EXPAND, ["may run", "may run", "runs", "runs"]),
        ("2, 3", None, FOLDED, ["does not run", "does not run", "does not run", "runs"]),
    ],
)
def test_axis_of_expand_dims(shape: str, axis: int | None, nodes: str, verdicts: list[str]) -> None:
    inputs = f"float[{shape}] x" if shape else "float x"  # the shape `[]` is unknown
    initializers = "" if axis is None else f"<int32 a = {{{axis}}}>"
    if axis is None and nodes == EXPAND:
        inputs += ", int32 a"
    found = [
        _verdict(inputs, nodes, release, initializers) for release in ("1.16.3", "1.23.2", "1.24.4", "1.28.0")
    ]
    assert found == verdicts


@pytest.mark.parametrize(
    ("shape", "is_input", "verdict"),
    [("[2, 3]", False, "does not run"), ("[N, M]", False, "does not run"), ("[2, 3]", True, "runs")],
)
def test_raw_axis_of_expand_dims(shape: str, *, is_input: bool, verdict: str) -> None:
    tested = model(EXPAND, f"float{shape} x, int32 a" if is_input else f"float{shape} x", opset=17)
    tested.graph.initializer.append(numpy_helper.from_array(np.array(0, np.int32), "a"))
    tested.ir_version = 8
    del tested.opset_import[1:2]  # a domain that the model does not use
    missing = check_support(tested, get_runtime("onnxruntime-1.23.2"))
    assert ("does not run" if missing else "runs") == verdict


PAST = "{0} = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v, {1}, , , {2})"
CACHED = PAST.format("y, p, r", "", "s, t")
DIVIDED = "y = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v, {})"
EMBED = "{} = com.microsoft.EmbedLayerNormalization <mask_index_type = {}> (i, , w, p, , g, b)"
TABLES = "int32{} i, float[6, 3] w, float[5, 3] p, float[3] g, float[3] b"
GROUPS = "y, p, r = com.microsoft.GroupQueryAttention <num_heads = 1, kv_num_heads = 1> (q, k, k, s, s, l, t)"
BATCHES = "y = com.microsoft.FusedMatMul <transBatchB = 1> (a, b)"
POOL = "y = com.microsoft.QLinearGlobalAveragePool <channels_last = {}> (x, s, z, s, z)"
SCALES = "float s, uint8 z"
BLOCKS = "y = com.microsoft.GatherBlockQuantized <bits = {}, block_size = 16> (d, i, s, z)"
PACKED = "y = com.microsoft.GatherBlockQuantized <block_size = 16> (d, i, s, z)"
QUANTIZED = "y = com.microsoft.MatMulNBits <K = 32, N = 2, bits = 8, block_size = 32> (x, w, s)"
WEIGHTS = "<uint8[2, 1, 32] w = {{{}}}, float[2, 1] s = {{1, 1}}>".format(", ".join(["0"] * 64))
PROJECTED = "y = com.microsoft.QAttention <num_heads = 1> (x, w, b, s, s, , z, z)"
CHOICE = "y = com.microsoft.QLinearWhere (c, x, s, {}, x, s, {}, ks, kz)"
STATES = "float[2, 0, 5] x, float[5, 24] w, float[24] b, float[2, 2, 2, 3, 4] p"
RECALLED = "y, r = com.microsoft.Attention <num_heads = 2> (x, w, b, m, p)"
HEADS = "float[2, 3, 5] x, float[5, 24] w, float[24] b, float[2, 1, 3, 3] m"
BIASED = "y = com.microsoft.Attention <num_heads = 2> (x, w, b, , , m)"
ROTATED = "float[1, 3, 16] q, float[1, 2, 0, A] s, int32[1] l, int32 t"
ROTARY = GROUPS.replace("num_heads = 1, kv_num_heads = 1", "num_heads = 2, kv_num_heads = 2, do_rotary = 1")
ROTARY = ROTARY.replace("t)", "t, c, c)")
CAUSAL = "y, r = com.microsoft.CausalConvWithState <channels_last = 1> (x, w, , s)"
NORMALIZED = "y = SimplifiedLayerNormalization <axis = {}> (x, w)"


@pytest.mark.parametrize(
    ("runtime", "inputs", "nodes", "verdict"),
    [
        ("1.31.1", "float[2, 3, 8] q, float[2, 4, N] k, float[2, 4, M] v, float[2, 2, 5, A] s, "
         "float[2, 2, 5, 4] t", CACHED, "may run"),
        ("1.31.1", "float[2, 3, 8] q, float[2, 4, N] k, float[2, 4, M] v, float[2, 2, 5, A] s, "
         "float[2, 2, 5, 3] t", CACHED, "does not run"),
        ("1.31.1", "float[2, 3, N] q, float[2, 4, 8] k, float[2, 4, 6] v, float[2, 2, 5, A] s, "
         "float[2, 2, 5, B] t", CACHED, "does not run"),
        ("1.31.1", "float[2, 3, N] q, float[2, 4, M] k, float[2, 4, 6] v, float[2, 2, 5, 4] s, "
         "float[2, 2, 5, B] t", CACHED, "does not run"),
        ("1.31.1", "float[2, 3, 8] q, float[2, 4, 8] k, float[2, 4, 8] v, float[2, 2, 5, 4] s, "
         "float[2, 2, 5, 4] t", CACHED, "runs"),
        ("1.31.1", "float[2, 3, 8] q, float[2, 2, 5, 4] k, float[2, 2, 5, 3] v", DIVIDED, "does not run"),
        ("1.18.1", "float[2, 3, 8] q, float[2, 2, 5, 4] k, float[2, 2, 5, 3] v", DIVIDED, "runs"),
        ("1.19.2", "float[2, 3, 8] q, float[2, 2, 5, N] k, float[2, 2, 5, 3] v", DIVIDED, "does not run"),
        ("1.31.1", "float[2, 3, 8] q, float[2, 2, 5, N] k, float[2, 2, 5, M] v, float[22] b",
         DIVIDED.format("b"), "does not run"),
        ("1.23.2", "float[0, 3, 8] q, float[0, 4, 8] k, float[0, 4, 8] v", DIVIDED, "does not run"),
        ("1.30.0", "float[0, 3, 8] q, float[0, 4, 8] k, float[0, 4, 8] v", DIVIDED, "runs"),
        ("1.23.2", TABLES.format("[2, 4]"), EMBED.format("y, m", 0), "does not run"),
        ("1.23.2", TABLES.format("[2, 4]"), EMBED.format("y, m", 1), "runs"),
        ("1.23.2", TABLES.format("[2, 4]"), EMBED.format("y", 0), "runs"),
        ("1.23.2", TABLES.format("[2, 4]"), EMBED.format("y, m, e", 0), "runs"),
        ("1.26.0", TABLES.format("[2, 4]"), EMBED.format("y, m", 0), "runs"),
        ("1.26.0", "float[1, 0, 8] k, float[1, 2, 8] q, float[1, 1, 4, 8] s, int32[1] l, int32 t", GROUPS,
         "does not run"),
        ("1.27.0", "float[1, 0, 8] k, float[1, 2, 8] q, float[1, 1, 4, 8] s, int32[1] l, int32 t", GROUPS,
         "runs"),
        ("1.31.1", "float[2, 2, 0] a, float[0, 2, 3] b", BATCHES, "does not run"),
        ("1.31.1", "float[2, 0, 3] a, float[3, 2, 3] b", BATCHES, "runs"),
        ("1.32.0", "float[2, 2, 0] a, float[0, 2, 3] b", BATCHES, "runs"),
        ("1.19.2", "float[2, 0] a, float[0, 3] b",
         'y = com.microsoft.FusedGemm <activation = "Relu"> (a, b)', "does not run"),
        ("1.19.2", "float[0, 2] a, float[2, 3] b",
         'y = com.microsoft.FusedGemm <activation = "Relu"> (a, b)', "runs"),
        ("1.20.1", "float[2, 0] a, float[0, 3] b",
         'y = com.microsoft.FusedGemm <activation = "Relu"> (a, b)', "runs"),
        ("1.31.1", f"uint8[2, 0, 3] x, {SCALES}", POOL.format(1), "does not run"),
        ("1.31.1", f"uint8[2, 0, 3] x, {SCALES}", POOL.format(0), "runs"),
        ("1.31.1", f"uint8[2, 3, 4, 0] x, {SCALES}", POOL.format(0), "does not run"),
        ("1.31.1", f"uint8[0, 3, 4] x, {SCALES}", POOL.format(0), "runs"),
        ("1.31.1", "uint8[3, 16] d, int64[2] i, float[3, 2] s, uint8[3, 1] z", BLOCKS.format(4), "runs"),
        ("1.31.1", "uint8[3, 16] d, int64[2] i, float[3, 2] s, uint8[A, 1] z", BLOCKS.format(4),
         "does not run"),
        ("1.31.1", "uint8[3, 16] d, int64[] i, float[3, 2] s, uint8[A, 1] z", BLOCKS.format(4), "runs"),
        ("1.22.1", "uint8[3, 8] d, int64[] i, float[3, 1] s, uint8[3, 1] z", PACKED, "runs"),
        ("1.22.1", "uint8[3, 16] d, int64[] i, float[3, 2] s, uint8[3, 1] z", PACKED, "does not run"),
        ("1.22.1", "uint8[3, 8] d, int64[2] i, float[3, 1] s, uint8[3, 1] z", PACKED, "does not run"),
        ("1.22.1", "uint8[3, 8] d, int64[2] i, float[3, 1] s", PACKED.replace(", z)", ")"), "runs"),
        ("1.22.1", "uint8[3, 8] d, int64[2] i, float[3, A] s", PACKED.replace(", z)", ")"),
         "does not run"),
        ("1.31.1", "uint8[3, 16] d, int64[2] i, float[3, A] s, uint8[3, 1] z", BLOCKS.format(4),
         "does not run"),
        ("1.31.1", "uint8[3, 16] d, int64[2] i, float[3, A] s, uint8[3, B] z", BLOCKS.format(4), "runs"),
        ("1.31.1", "uint8[3, 32] d, int64[2] i, float[3, A] s, uint8[3, B] z", BLOCKS.format(8),
         "does not run"),
        ("1.31.1", "uint8[A, B] d, int64[2] i, float[A, C] s, uint8[A, D] z", BLOCKS.format(4),
         "does not run"),
        ("1.31.1", "float[2, 0] x, float[2, 0] z, float[2, 1] g", "y = com.microsoft.GatedAdd (x, z, g)",
         "does not run"),
        ("1.31.1", "float[0, 2] x, float[0, 2] z, float[0, 1] g", "y = com.microsoft.GatedAdd (x, z, g)",
         "runs"),
        ("1.31.1", "uint8[0, 2, 3] x, uint8[3, 3] w, float[3] b, float s, uint8 z", PROJECTED,
         "does not run"),
        ("1.31.1", "uint8[2, 0, 3] x, uint8[3, 3] w, float[3] b, float s, uint8 z", PROJECTED, "runs"),
("1.28.0", "float[2, 0] x, float[0] b", "y = com.microsoft.FastGelu (x, b)", "does not run"),
        ("1.28.0", "float[0, 2] x, float[2] b", "y = com.microsoft.FastGelu (x, b)", "runs"),
        ("1.30.0", "float[2, 0] x, float[0] b", "y = com.microsoft.FastGelu (x, b)", "runs"),
        ("1.20.1", "double[2] d", "f = com.microsoft.FastGelu (d) y = Cast <to = 1> (f)", "does not run"),
        ("1.21.1", "double[2] d", "f = com.microsoft.FastGelu (d) y = Cast <to = 1> (f)", "runs"),
        ("1.30.0", "double[2] d", "f = com.microsoft.QuickGelu (d) y = Cast <to = 1> (f)", "does not run"),
        ("1.31.1", "double[2] d", "f = com.microsoft.QuickGelu (d) y = Cast <to = 1> (f)", "runs"),
        ("1.31.1", "float[0, 4] a, float[4] b", "y = com.microsoft.FusedMatMul (a, b)", "does not run"),
        ("1.31.1", "float[2, 0] a, float[0] b", "y = com.microsoft.FusedMatMul (a, b)", "runs"),
        ("1.31.1", "float[2, 4] a, float[4] b", "y = com.microsoft.FusedMatMul (a, b)", "runs"),
        ("1.32.0", "float[0, 4] a, float[4] b", "y = com.microsoft.FusedMatMul (a, b)", "runs"),
        ("1.20.1", f"{STATES}, int32[2, 3] m", RECALLED, "runs"),
        ("1.28.0", f"{STATES}, int32[2, 3] m", RECALLED, "does not run"),
        ("1.28.0", f"{STATES}, int32[2, 0, 3] m", RECALLED, "runs"),
        ("1.30.0", f"{STATES}, int32[2, 3] m", RECALLED, "runs"),
        ("1.19.2", HEADS, BIASED, "does not run"),
        ("1.20.1", HEADS, BIASED, "runs"),
        ("1.31.1", f"{ROTATED}, float[1, 3, 16] k, float[9, A] c", ROTARY, "does not run"),
        ("1.31.1", "float[1, 2, 3] x, float[2, 1, 4] w, float[1, 2, A] s", CAUSAL, "may run"),
        ("1.31.1", "float[1, A, B] x, float[2, 1, 4] w, float[1, C, 3] s", CAUSAL, "does not run"),
        ("1.24.4", "float[0, 2] x, float[0, 2] w", "y = LayerNormalization <axis = 0> (x, w)",
         "does not run"),
        ("1.24.4", "float[0, 2] x, float[2] w", "y = LayerNormalization (x, w)", "runs"),
        ("1.23.2", "float[2, 3, 1] x, float[N] w", NORMALIZED.format(2), "does not run"),
        ("1.23.2", "float[A, B, C] x, float[1, 1] w", NORMALIZED.format(-2), "does not run"),
        ("1.23.2", "float[2, 3, 4] x, float[N] w", NORMALIZED.format(2), "runs"),
        ("1.23.2", "float[A, B, C] x, float[4] w", NORMALIZED.format(2), "runs"),
        ("1.24.4", "float[2, 3, 1] x, float[1] w", NORMALIZED.format(2), "runs"),
    ],
)  # fmt: skip
def test_nodes_that_releases_refuse(runtime: str, inputs: str, nodes: str, verdict: str) -> None:
    # older opsets lack both operators of the default domain
    opset = 16 if "y = Simplified" in nodes or "y = LayerNorm" in nodes else 17
    assert _verdict(inputs, nodes.replace("{}", ""), runtime, opset=opset) == verdict


@pytest.mark.parametrize(
    ("inputs", "verdict"), [("float[2, 32] x", "does not run"), ("float[0, 32] x", "runs")]
)
def test_weights_of_8_bits(inputs: str, verdict: str) -> None:
    assert _verdict(inputs, QUANTIZED, "1.22.1", WEIGHTS) == verdict


@pytest.mark.parametrize(
    ("runtime", "sizes", "verdict"),
    [
        ("1.28.0", "0, 4", "does not run"),
        ("1.28.0", "2, 4", "runs"),
        ("1.30.0", "0, 4", "runs"),
    ],
)
def test_constant_skip_without_elements(runtime: str, sizes: str, verdict: str) -> None:
    nodes = "s = Constant <value = float16[{}] {{{}}}> () y = com.microsoft.SkipLayerNormalization (x, s, g)"
    elements = ", ".join(["0"] * (0 if sizes[0] == "0" else 8))
    inputs = f"float16[{sizes}] x, float16[4] g"
    assert _verdict(inputs, nodes.format(sizes, elements), runtime) == verdict


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [("kz", "kz", "runs"), ("z", "kz", "does not run"), ("kz", "z", "does not run")],
)
def test_constant_zero_points_of_a_choice(first: str, second: str, verdict: str) -> None:
    inputs = "bool[2] c, uint8[2] x, float s, uint8 z"
    constants = "<float ks = {1}, uint8 kz = {3}>"
    assert _verdict(inputs, CHOICE.format(first, second), "1.31.1", constants) == verdict


TWO_BITS = "{0}[2, 32] x, uint8[2, 1, 8] w, {0}[2] s"
PACKED_BITS = "y = com.microsoft.MatMulNBits <K = 32, N = 2, bits = 2, block_size = 32> (x, w, s{})"


@pytest.mark.parametrize(
    ("element_type", "inputs", "parameters", "verdicts"),
    [
        # releases 1.23.2, 1.24.4, 1.26.0 and 1.31.1
        ("float", "", "", ["does not run", "runs", "runs", "runs"]),
        ("float", "uint8[2, 1] z", ", z", ["does not run", "runs", "runs", "runs"]),
        ("float", "float[2, 1] z", ", z", ["does not run", "does not run", "does not run", "runs"]),
        ("float", "int32[32] g", ", , g", ["does not run", "does not run", "does not run", "runs"]),
        ("float16", "", "", ["does not run", "does not run", "does not run", "runs"]),
    ],
)
def test_weights_of_two_bits(element_type: str, inputs: str, parameters: str, verdicts: list[str]) -> None:
    declared = ", ".join(filter(None, [TWO_BITS.format(element_type), inputs]))
    # the type of the result does not matter
    nodes = PACKED_BITS.format(parameters).replace("y =", "h =") + " n = Shape (h) y = Cast <to = 1> (n)"
    releases = ("1.23.2", "1.24.4", "1.26.0", "1.31.1")
    assert [_verdict(declared, nodes, release) for release in releases] == verdicts


EXPERTS = (
    "float[2, 16] x, float[2, 1] r, uint8[1, {0}, 8] v, float[1, {0}, 1] s, "
    "uint8[1, 16, {1}] w, float[1, 16, {2}] t"
)
MIXTURE = "y = com.microsoft.QMoE <block_size = 16, k = 1, {}> (x, r, v, s, , w, t{})"


@pytest.mark.parametrize(
    ("sizes", "attributes", "inputs", "parameters", "verdict"),
    [
        ((16, 8, 1), 'activation_type = "silu"', "", "", "runs"),
        ((32, 16, 2), 'activation_type = "silu"', "", "", "does not run"),
        ((16, 8, 1), 'activation_type = "silu"', "uint8[1, 16, 1] z", ", , , , , z", "does not run"),
        ((16, 8, 1), 'activation_type = "silu"', "uint8[1, 16, N] z", ", , , , , z", "does not run"),
        ((16, 8, 1), 'activation_type = "silu"', "uint8[1, 8] z", ", , , , , z", "runs"),
    ],
)
def test_blocks_of_experts(
    sizes: tuple[int, ...], attributes: str, inputs: str, parameters: str, verdict: str
) -> None:
    declared = ", ".join(filter(None, [EXPERTS.format(*sizes), inputs]))
    assert _verdict(declared, MIXTURE.format(attributes, parameters), "1.24.4") == verdict
