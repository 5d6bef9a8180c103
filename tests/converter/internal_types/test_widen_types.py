"""Narrow types are replaced by wider ones with the same values."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import Array, assert_equal, build, run, run_reference
from support.runtimes import needs_newest_onnx

from opshift import default_registry
from opshift.converter.internal_types.float_formats import FORMATS, type_numbers, widen_tensor
from opshift.converter.internal_types.narrow_results import EXACT_SOURCES, NUMERIC_SOURCES, Widening
from opshift.converter.internal_types.widen_types import widen_types
from opshift.model.messages import TensorProto as OwnTensor

DTYPES = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
    "float8e8m0": ml_dtypes.float8_e8m0fnu,
}
WIDE = {"float": np.float32, "float16": np.float16}
ALL = {**dict.fromkeys(DTYPES, "float"), "int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8"}


def _number(element_type: str) -> int:
    return int(getattr(TensorProto, element_type.upper()))


def _all_values(element_type: str) -> Array:
    dtype = DTYPES[element_type]
    if element_type == "bfloat16":
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    return np.arange(16 if element_type == "float4e2m1" else 256, dtype=np.uint8).view(dtype)


def _boundary_floats(element_type: str) -> Array:
    """Return all values, the midpoints, the next floats of both, special values, and a million others."""
    with np.errstate(invalid="ignore"):
        values = np.unique(_all_values(element_type).astype(np.float64))
    values = values[np.isfinite(values)]
    beyond = 2 * values[-1] - values[-2]
    values = np.concatenate([[-beyond], values, [beyond]])
    middle = (values[:-1] + values[1:]) / 2
    with np.errstate(over="ignore"):
        near = np.concatenate([values, middle]).astype(np.float32)
    special = np.array([0, -0.0, np.nan, np.inf, -np.inf], np.float32)
    random = np.random.default_rng(0)
    patterns = random.integers(0, 1 << 32, 500_000, dtype=np.uint32).view(np.float32)
    normal = (random.standard_normal(500_000) * 3).astype(np.float32)
    limits = np.float32(np.inf), np.float32(-np.inf)
    return np.concatenate([near, *(np.nextafter(near, each) for each in limits), special, patterns, normal])


def _widened(model: onnx.ModelProto, wider: dict[str, str]) -> onnx.ModelProto:
    result, reasons = widen_types(model, default_registry(), Widening(wider, NUMERIC_SOURCES, "no remedy"))
    assert not reasons
    assert result is not None
    return result


def _reason(model: onnx.ModelProto, wider: dict[str, str]) -> str:
    result, reasons = widen_types(model, default_registry(), Widening(wider, EXACT_SOURCES, "no remedy"))
    assert result is None
    return next(iter(reasons.values())).reason


@pytest.mark.some_cases(6)
@pytest.mark.parametrize("saturate", [1, 0])
@pytest.mark.parametrize(
    ("element_type", "wide"),
    [(name, wide) for name in FORMATS for wide in WIDE if (name, wide) != ("bfloat16", "float16")],
)
def test_rounds_like_cast(element_type: str, wide: str, saturate: int) -> None:
    has_saturation = element_type.startswith("float8")
    options = {"saturate": saturate} if has_saturation else {}
    node = helper.make_node("Cast", ["x"], ["y"], to=_number(element_type), **options)
    feeds = {"x": _boundary_floats(element_type)}
    model = build([node], feeds, {"y": _number(element_type)}, 23, ir_version=11)
    with np.errstate(all="ignore"):
        expected = run_reference(model, feeds)[0].astype(WIDE[wide])
    widened = _widened(model, {element_type: wide})
    assert {each.op_type for each in widened.graph.node} >= {"Round"}
    for found in (run(widened, feeds)[0], run_reference(widened, feeds)[0]):
        np.testing.assert_array_equal(found, expected)
        is_number = ~np.isnan(feeds["x"]) & ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(expected)[is_number])


@pytest.mark.parametrize("is_raw", [True, False])
@pytest.mark.parametrize(
    ("element_type", "wide"), [*((each, "float") for each in DTYPES), ("float8e5m2fnuz", "float16")]
)
def test_widens_tensors(element_type: str, wide: str, is_raw: bool) -> None:
    values = _all_values(element_type)[:-1]  # an odd number of 4-bit values
    tensor = numpy_helper.from_array(values.reshape(1, -1), "w")
    if not is_raw:
        size = 2 if element_type == "bfloat16" else 1
        raw = np.frombuffer(tensor.raw_data, np.uint16 if size == 2 else np.uint8)
        tensor.ClearField("raw_data")
        tensor.int32_data.extend(raw.tolist())
    found = OwnTensor.FromString(tensor.SerializeToString())
    assert widen_tensor(found, type_numbers({element_type: wide}))
    array = numpy_helper.to_array(onnx.TensorProto.FromString(found.SerializeToString()))
    np.testing.assert_array_equal(array, values.astype(WIDE[wide]).reshape(1, -1))


@pytest.mark.parametrize("element_type", ["bfloat16", "float8e4m3fn", "float4e2m1", "int4"])
def test_refuses_tensors_without_their_data(element_type: str) -> None:
    model = build([], {}, [], 23, ir_version=11)
    model.graph.initializer.add(name="w", data_type=_number(element_type), dims=[3], raw_data=b"\x00" * 5)
    assert _reason(model, ALL) == "tensor 'w' has external or invalid data"


BODIES = {
    "moved": "a = Identity(x) t = Transpose(a) y = Cast<to = 1>(t)",
    "cast like": "a = CastLike(f, x) y = Cast<to = 1>(a)",
    "from the same type": """
        a = Cast<to = TYPE>(x) b = Cast<to = 10>(a) c = Cast<to = TYPE>(b) y = Cast<to = 1>(c)
    """,
    "from integers": "i = Cast<to = 7>(f) a = Cast<to = TYPE>(i) y = Cast<to = 1>(a)",
    "branches": """
        c = Constant<value = bool {1}>()
        a = If(c) <then_branch = t () => (NAME[2, 3] p) { p = Cast<to = TYPE>(f) },
                   else_branch = e () => (NAME[2, 3] q) { q = Identity(x) }>
        y = Cast<to = 1>(a)
    """,
    "constant": "a = Identity(w) y = Cast<to = 1>(a)",
    "output": "a = Identity(x) y = Cast<to = 1>(w)",
}


def _model(name: str, element_type: str) -> onnx.ModelProto:
    body = BODIES[name].replace("TYPE", str(_number(element_type))).replace("NAME", element_type)
    text = f"""
        <ir_version: 13, opset_import: ["" : 25]>
        g ({element_type}[2, 3] x, float[2, 3] f) => (float[M, N] y) {{ {body} }}
    """
    model: onnx.ModelProto = onnx.parser.parse_model(text)
    values = [0, 1, 1, 0, 1, 1]
    model.graph.initializer.append(helper.make_tensor("w", _number(element_type), [2, 3], values))
    return model


def _feeds(element_type: str) -> dict[str, Array]:
    dtype = helper.tensor_dtype_to_np_dtype(_number(element_type))
    x = np.array([[0, 1, 1], [1, 0, 1]], np.float32).astype(dtype)
    f = np.array([[0.3, 1, -2.4], [1.7, 0, 1]], np.float32)
    return {"x": x, "f": np.round(f) if "int" in element_type else f}  # onnx.reference truncates to integers


@pytest.mark.parametrize("element_type", ["bfloat16", "float8e5m2fnuz", "float4e2m1", "int4", "uint2"])
@pytest.mark.parametrize("name", BODIES)
def test_keeps_results(name: str, element_type: str) -> None:
    model, feeds = _model(name, element_type), _feeds(element_type)
    expected = run_reference(model, feeds)
    widened = _widened(model, ALL)
    onnx.checker.check_model(widened, full_check=True)
    wide = helper.tensor_dtype_to_np_dtype(_number(ALL[element_type]))
    feeds["x"] = feeds["x"].astype(np.float32).astype(wide)
    for run_widened in (run, run_reference):
        assert_equal(run_widened(widened, feeds), expected, 0)


@pytest.mark.parametrize(
    "form", ["Add(x, x)", "MatMul(x, x)", "Tanh(x)", "Softmax(x)", "Gelu(x)", "ReduceSum(x)"]
)
def test_rounds_results_of_arithmetic(form: str) -> None:
    text = f"""
        <ir_version: 11, opset_import: ["" : 23]>
        g (bfloat16[3, 3] x) => (bfloat16[M, N] y) {{ y = {form} }}
    """
    model = onnx.parser.parse_model(text)
    x = np.linspace(-3, 3, 9, dtype=np.float32).reshape(3, 3).astype(ml_dtypes.bfloat16)
    found = run(_widened(model, ALL), {"x": x.astype(np.float32)})[0]
    in_float = onnx.parser.parse_model(text.replace("bfloat16", "float"))
    expected = run(in_float, {"x": x.astype(np.float32)})[0].astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(found, expected.astype(np.float32))


@pytest.mark.parametrize(
    ("element_type", "body", "reason"),
    [
        ("bfloat16", "y = BitCast<to = 4>(x)", "BitCast may depend on the number of bits of bfloat16"),
        ("bfloat16", "y = acme.Op(x)", "Op may depend on the number of bits of bfloat16"),
        ("bfloat16", "z = Range(x, x, x) y = Shape(z)", "Range may depend on the number of bits of bfloat16"),
        ("bfloat16", 'y = ScatterND<reduction = "add">(x, i, x)', "ScatterND may depend on the number of"),
        ("float8e5m2", "y = QuantizeLinear(f, n, z)", "the rank of 'f' or 'n' is unknown"),
        ("int4", "y = Cast<to = 22>(f)", "runtimes round a Cast from float to int4 differently"),
        ("float8e8m0", "y = Cast<to = 24>(f)", "runtimes round a Cast from float to float8e8m0 differently"),
        ("bfloat16", "y = Cast<to = 16>(s)", "runtimes round a Cast from string to bfloat16 differently"),
        ("bfloat16", "u = acme.Op(f) y = Add(u, u)", "the element type of 'y' is unknown"),
    ],
)  # fmt: skip
def test_refuses_nodes_that_depend_on_the_type(element_type: str, body: str, reason: str) -> None:
    text = f"""
        <ir_version: 13, opset_import: ["" : 26, "acme" : 1]>
        g ({element_type} x, float f, string s, int64[1] i, float[] n, float8e5m2 z) => () {{ {body} }}

    """
    assert _reason(onnx.parser.parse_model(text), ALL).startswith(reason)


def test_refuses_functions_whose_calls_differ() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[2] f, bfloat16[2] x) => (float[2] y, bfloat16[2] z) { y = local.F(f) z = local.F(x) }
        <domain: "local", opset_import: ["" : 21]>
        F (v) => (w) { w = Add(v, v) }
    """
    assert _reason(onnx.parser.parse_model(text), ALL) == "the element type of 'w' is unknown"


QUANTIZED = {
    "per tensor": "q = QuantizeLinear(x, s, zp) y = DequantizeLinear(q, s, zp)",
    "one scale": "q = QuantizeLinear<output_dtype = TYPE>(x, s1) y = DequantizeLinear(q, s1)",
    "per axis": """
        q = QuantizeLinear<axis = 0, output_dtype = TYPE>(x, s2) y = DequantizeLinear<axis = -2>(q, s2)
    """,
    "blocks": """
        q = QuantizeLinear<axis = 1, block_size = 3, output_dtype = TYPE>(x, s22)
        y = DequantizeLinear<axis = 1, block_size = 3>(q, s22)
    """,
    "bfloat16 scale": """
        h = Cast<to = 16>(x) r = Cast<to = 16>(s) q = QuantizeLinear<output_dtype = TYPE>(h, r)
        d = DequantizeLinear(q, r) y = Cast<to = 1>(d)
    """,
    "bfloat16 data": """
        h = Cast<to = 16>(x) r = Cast<to = 16>(s) q = QuantizeLinear<output_dtype = 3>(h, r)
        d = DequantizeLinear(q, r) y = Cast<to = 1>(d)
    """,
    "other result": """
        q = QuantizeLinear(x, s, zp) d = DequantizeLinear<output_dtype = 10>(q, s) y = Cast<to = 1>(d)
    """,
    "without saturation": """
        q = QuantizeLinear<saturate = 0, output_dtype = TYPE>(x, s) y = DequantizeLinear(q, s)
    """,
}


@needs_newest_onnx
@pytest.mark.parametrize("element_type", ["float8e4m3fn", "float8e5m2fnuz", "float4e2m1"])
@pytest.mark.parametrize("name", QUANTIZED)
def test_quantizes_to_floats(name: str, element_type: str) -> None:
    text = f"""
        <ir_version: 11, opset_import: ["" : 23]>
        g (float[2, 5] x) => (float[2, 5] y)
        <float s = {{0.25}}, float[1] s1 = {{0.5}}, float[2] s2 = {{0.5, 2}},
         float[2, 2] s22 = {{0.5, 2, 1, 4}}>
        {{ {QUANTIZED[name].replace("TYPE", str(_number(element_type)))} }}
    """
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(helper.make_tensor("zp", _number(element_type), [], [0]))
    feeds = {"x": np.array([[-3, 0.3, 1.2, 7, 1000], [0.01, -0.7, 2.5, -1e5, 0]], np.float32)}
    expected = run_reference(model, feeds)
    widened = _widened(model, ALL)
    for run_widened in (run, run_reference):
        assert_equal(run_widened(widened, feeds), expected, 0)


@needs_newest_onnx
@pytest.mark.parametrize(
    ("element_type", "precision"),
    [("float8e4m3fn", 16), ("float8e4m3fn", 10), ("int8", 16), ("int4", 0), ("uint4", 16), ("int2", 10)],
)
def test_quantizes_with_precision_and_to_integers_of_32_bits(element_type: str, precision: int) -> None:
    text = f"""
        <ir_version: 13, opset_import: ["" : 25]>
        g (float[8, 200] x) => (float[8, 200] y) <float s = {{0.3}}> {{
            q = QuantizeLinear<precision = {precision}>(x, s, zp) y = DequantizeLinear(q, s, zp)
        }}
    """
    model = onnx.parser.parse_model(text)
    zero = 0 if element_type.startswith("float") else 1
    model.graph.initializer.append(helper.make_tensor("zp", _number(element_type), [], [zero]))
    feeds = {"x": np.random.default_rng(0).standard_normal((8, 200)).astype(np.float32) * 9}
    expected = run_reference(model, feeds)
    wider = {**ALL, "int4": "int32", "uint4": "int32", "int2": "int32"}
    for run_widened in (run, run_reference):
        assert_equal(run_widened(_widened(model, wider), feeds), expected, 0)


@pytest.mark.parametrize(
    ("element_type", "values", "wide"),
    [("int4", [-8, 0, 7], "int8"), ("int4", [-8, 0, 7], "int32"), ("uint2", [3, 0, 2], "int32")],
)
def test_widens_integers(element_type: str, values: list[int], wide: str) -> None:
    tensor = OwnTensor.FromString(
        helper.make_tensor("w", _number(element_type), [3], values).SerializeToString()
    )
    assert widen_tensor(tensor, type_numbers({element_type: wide}))
    array = numpy_helper.to_array(onnx.TensorProto.FromString(tensor.SerializeToString()))
    assert (array.dtype.name, array.tolist()) == (wide, values)


@pytest.mark.parametrize("element_type", [*DTYPES, "int4", "uint2"])
def test_decodes_external_data(element_type: str, tmp_path: Path) -> None:
    text = """
        <ir_version: 13, opset_import: ["" : 25]>
        g () => (float[N] y) { a = Cast<to = 1>(w) b = Cast<to = 1>(v) y = Add(a, b) }
    """
    model = onnx.parser.parse_model(text)
    dtype = helper.tensor_dtype_to_np_dtype(_number(element_type))
    values = _all_values(element_type)[:-1] if element_type in DTYPES else np.arange(3).astype(dtype)
    tensors = [numpy_helper.from_array(values, name) for name in ("w", "v")]
    model.graph.initializer.extend(tensors)
    expected = run_reference(model, {})
    for tensor in model.graph.initializer:
        (tmp_path / f"{tensor.name}.bin").write_bytes(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=f"{tensor.name}.bin")
    widened = _widened(model, ALL)
    onnx.save(widened, tmp_path / "model.onnx")
    assert_equal(run_reference(onnx.load(tmp_path / "model.onnx"), {}), expected, 0)
    if element_type in DTYPES and element_type != "float4e2m1":
        assert [each.op_type for each in widened.graph.node].count("Constant") == 1  # both share the numbers


@pytest.mark.parametrize("element_type", [*DTYPES, "int4", "uint2"])
def test_widens_external_tensors_without_elements(element_type: str) -> None:
    model = build([helper.make_node("Shape", ["w"], ["y"])], {}, {"y": TensorProto.INT64}, 25, ir_version=13)
    tensor = model.graph.initializer.add(name="w", data_type=_number(element_type), dims=[0, 2])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    widened = _widened(model, ALL)
    assert not widened.graph.initializer[0].external_data
    assert_equal(run_reference(widened, {}), [np.array([0, 2])])


def test_refuses_external_defaults_of_inputs() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 11, opset_import: ["" : 23]>
        g (bfloat16[2] w) => (float[2] y) { y = Cast<to = 1>(w) }
    """)
    tensor = model.graph.initializer.add(name="w", data_type=TensorProto.BFLOAT16, dims=[2])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    assert _reason(model, ALL) == "tensor 'w' has external or invalid data"


@pytest.mark.parametrize("body", ["h = Cast<to = 16>(f)", "h = Add(x, x)", "h = QuantizeLinear(f, f, i)"])
def test_keeps_names_of_nodes_and_outputs_distinct(body: str) -> None:
    """Tract names a node without a name after its output."""
    text = f"""
        <ir_version: 10, opset_import: ["" : 21]>
        g (float f, bfloat16 x, int4 i) => (float y) {{ {body} y = Cast<to = 1>(h) }}
    """
    model = onnx.parser.parse_model(text)
    for node in model.graph.node:
        node.name = node.output[0]
    names = [each.name or each.output[0] for each in _widened(model, ALL).graph.node]
    assert len(names) == len(set(names))
