"""Integers of 4 and 2 bits that stay inside of a model are replaced by integers of 8 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel
from support.execution import assert_equal, run, run_reference

from opshift.converter.convert import convert_version, plan_version
from opshift.converter.refusals import ConversionRefused
from opshift.converter.streaming.convert_file import convert_file
from opshift.model.tensors import PACKED_BITS

X = (np.arange(24, dtype=np.float32).reshape(4, 6) - 11) * 1.3
FEEDS = {"x": X, "i": np.arange(-12, 12, dtype=np.int32).reshape(4, 6) * 7, "c": np.array(True)}
INPUTS = "float[4, 6] x, int32[4, 6] i, bool c"

MODELS = {
    "quantize and dequantize": "q = QuantizeLinear(x, s, zp) y = DequantizeLinear(q, s, zp)",
    "output_dtype": "q = QuantizeLinear<output_dtype = TYPE>(x, s) y = DequantizeLinear(q, s)",
    "per axis": """
        q = QuantizeLinear<axis = 0>(x, s4, zp4) y = DequantizeLinear<axis = 0>(q, s4, zp4)
    """,
    "blocks": """
        q = QuantizeLinear<axis = 1, block_size = 3>(x, s42)
        y = DequantizeLinear<axis = 1, block_size = 3>(w, s42)
    """,
    "weight": "d = DequantizeLinear(w, s, zp) y = Add(x, d)",
    "moved weight": """
        t = Transpose<perm = [1, 0]>(w) shape = Constant<value_ints = [6, 2, 2]>() r = Reshape(t, shape)
        u = Unsqueeze(r, axis) f = Flatten<axis = 2>(u) d = DequantizeLinear(f, s, zp) y = Identity(d)
    """,
    "cast of integers": "q = Cast<to = TYPE>(i) y = Cast<to = 1>(q)",
    "cast to other types": """
        q = Cast<to = TYPE>(i) b = Cast<to = 9>(q) f = Cast<to = 1>(b) o = Cast<to = 7>(q) g = Cast<to = 1>(o)
        y = Sub(f, g)
    """,
    "cast between narrow types": """
        q = Cast<to = TYPE>(i) o = Cast<to = OTHER>(q) r = Cast<to = TYPE>(o) y = Cast<to = 1>(r)
    """,
    "cast like": "q = CastLike(i, zp) y = Cast<to = 1>(q)",
    "branches": """
        q = If(c) <
            then_branch = t () => (TYPENAME[4, 6] a) { a = QuantizeLinear(x, s, zp) },
            else_branch = e () => (TYPENAME[4, 6] b) { b = Identity(w) }
        >
        y = DequantizeLinear(q, s)
    """,
    "loop": """
        n = Constant<value_int = 2>()
        q = Loop(n, c, w) <
            body = b (int64 k, bool c_in, TYPENAME[4, 6] q_in) => (bool c_out, TYPENAME[4, 6] q_out) {
                c_out = Identity(c_in) d = DequantizeLinear(q_in, s) e = Add(d, x)
                q_out = QuantizeLinear(e, s, zp)
            }
        >
        y = DequantizeLinear(q, s)
    """,
    "shape and size": """
        h = Shape(w) g = Cast<to = 1>(h) n = Size(w) m = Cast<to = 1>(n) a = ReduceSum(g)
        b = Add(a, m) y = Add(x, b)
    """,
    "filled": """
        h = Shape(x) q = ConstantOfShape(h) y = DequantizeLinear(q, s)
    """,
    "padded": """
        p = Constant<value_ints = [1, 0, 0, 2]>() q = Pad(w, p, zp) y = DequantizeLinear(q, s)
    """,
}


def model_of(
    body: str, element_type: str = "int4", opset: int = 21, inputs: str = INPUTS, *, ranks: int = 2
) -> onnx.ModelProto:
    number = getattr(TensorProto, element_type.upper())
    other = {"int4": 21, "uint4": 22, "int2": 25, "uint2": 26}[element_type]
    body = body.replace("TYPENAME", element_type).replace("TYPE", str(number)).replace("OTHER", str(other))
    text = f"""
        <ir_version: {10 if opset < 25 else 13}, opset_import: ["" : {opset}]>
        g ({inputs}) => (float[{", ".join("abcd"[:ranks])}] y)
        <float s = {{0.5}}, float[4] s4 = {{0.5, 0.25, 2, 1}},
         float[4, 2] s42 = {{1, 2, 0.5, 0.25, 3, 1, 1, 2}}, int64[1] axis = {{0}}> {{ {body} }}
    """
    model: onnx.ModelProto = parser.parse_model(text)
    high = 1 << PACKED_BITS[element_type]
    low = -high // 2 if element_type.startswith("int") else 0
    weights = (np.arange(24) * 5 % high + low).reshape(4, 6)
    model.graph.initializer.append(helper.make_tensor("zp", number, [], [1]))
    model.graph.initializer.append(helper.make_tensor("zp4", number, [4], [0, 1, low, low + high - 1]))
    model.graph.initializer.append(helper.make_tensor("w", number, [4, 6], weights.flatten().tolist()))
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape":
            node.attribute.append(
                helper.make_attribute("value", helper.make_tensor("", number, [1], [high // 2 - 1]))
            )
    return model


def run_anywhere(model: onnx.ModelProto) -> Any:
    """Run a model in onnxruntime, or in onnx.reference, because onnxruntime moves few narrow integers."""
    try:
        return run(model, FEEDS)
    except NoKernel:
        return run_reference(model, FEEDS)


@pytest.mark.parametrize("element_type", ["int4", "uint4"])
@pytest.mark.parametrize("name", MODELS)
def test_replaces_narrow_integers(name: str, element_type: str) -> None:
    model = model_of(MODELS[name], element_type)
    onnx.checker.check_model(model, full_check=True)
    before = run_anywhere(model)
    for target in (20, 18, 13, 11, 10, 8):
        converted = convert_version(model, target)
        onnx.checker.check_model(converted, full_check=True)
        assert_equal(run(converted, FEEDS), before)


INT2 = {
    name: body
    for name, body in MODELS.items()
    if name not in ("cast between narrow types", "branches", "loop")  # onnx.reference lacks parts of these
}


@pytest.mark.parametrize("element_type", ["int2", "uint2"])
@pytest.mark.parametrize("name", INT2)
def test_replaces_integers_of_two_bits(name: str, element_type: str) -> None:
    model = model_of(INT2[name], element_type, 25)
    onnx.checker.check_model(model, full_check=True)
    before = run_anywhere(model)
    for target in (24, 20, 13, 8):
        converted = convert_version(model, target)
        onnx.checker.check_model(converted, full_check=True)
        assert_equal(run(converted, FEEDS), before)


@pytest.mark.parametrize("source", ["int8", "uint8", "int16", "int64", "uint64", "bool"])
@pytest.mark.parametrize("element_type", ["int4", "uint4"])
def test_casts_keep_the_low_bits(source: str, element_type: str) -> None:
    kind = np.dtype(source)
    if source == "bool":
        values = np.array([False, True] * 12)
    else:
        limits = np.iinfo(kind)
        edges = [limits.min, limits.max, limits.max - 7, limits.max // 2 + 1, *range(20)]
        values = np.array(edges, dtype=kind)
    body = "q = Cast<to = TYPE>(v) y = Cast<to = 1>(q)"
    model = model_of(body, element_type, inputs=f"{source}[24] v", ranks=1)
    feeds = {"v": values}
    before = run(model, feeds)
    for target in (20, 13, 9):
        assert_equal(run(convert_version(model, target), feeds), before)


@pytest.mark.parametrize("element_type", ["int4", "uint4"])
def test_widens_all_values(element_type: str) -> None:
    """Packed bytes in both fields, with an odd number of elements, in initializers and Constant nodes."""
    number = getattr(TensorProto, element_type.upper())
    high = 1 << 4
    low = -8 if element_type == "int4" else 0
    values = [*range(low, low + high), low]
    in_numbers = helper.make_tensor("a", number, [17], values)
    packed = bytes(byte & 0xFF for byte in in_numbers.int32_data)
    in_bytes = helper.make_tensor("b", number, [17], packed, raw=True)
    model = model_of(
        "e = Cast<to = 1>(a) f = Cast<to = 1>(b) g = Cast<to = 1>(k) y = Sum(e, f, g)", element_type, ranks=1
    )
    model.graph.initializer.extend([in_numbers, in_bytes])
    model.graph.node.insert(0, helper.make_node("Constant", [], ["k"], value=in_bytes))
    for target in (20, 9):
        assert_equal(run(convert_version(model, target), FEEDS), [np.array(values, np.float32) * 3])


def test_converts_functions() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[4, 6] x) => (float[4, 6] y) <float s = {0.5}, int4 zp = {1}> {
            q = QuantizeLinear(x, s, zp) y = local.F(q, s, zp)
        }
        <domain: "local", opset_import: ["" : 21]>
        F (q, s, zp) => (y) { t = Transpose<perm = [1, 0]>(q) d = DequantizeLinear(t, s, zp)
            y = Transpose(d) }
    """
    model = parser.parse_model(text)
    feeds = {"x": X}
    converted = convert_version(model, 18)
    assert_equal(run(converted, feeds), run(model, feeds))


def test_converts_external_data(tmp_path: Path) -> None:
    for count in (24, 23):
        model = model_of("d = DequantizeLinear(r, s, zp) y = Identity(d)", "int4", ranks=1)
        packed = bytes(range(0x10, 0x10 + 12))
        weight = helper.make_tensor("r", TensorProto.INT4, [count], packed, raw=True)
        before = model_of("d = DequantizeLinear(r, s, zp) y = Identity(d)", "int4", ranks=1)
        before.graph.initializer.append(weight)
        expected = run(before, FEEDS)
        (tmp_path / "w.bin").write_bytes(packed)
        external = model.graph.initializer.add(name="r", data_type=TensorProto.INT4, dims=[count])
        external.data_location = TensorProto.EXTERNAL
        external.external_data.add(key="location", value="w.bin")
        onnx.save(model, tmp_path / "model.onnx")
        convert_file(tmp_path / "model.onnx", tmp_path / "out.onnx", 13)
        assert_equal(run(onnx.load(tmp_path / "out.onnx"), FEEDS), expected)


@pytest.mark.full
def test_converts_large_files(tmp_path: Path) -> None:
    weights = np.arange(1500 * 1001) % 16 - 8
    model = model_of("t = Transpose(big) d = DequantizeLinear(t, s, zp) y = Identity(d)", "int4")
    packed = bytes(first % 16 | second % 16 << 4 for first, second in weights.reshape(-1, 2).tolist())
    big = helper.make_tensor("big", TensorProto.INT4, [1500, 1001], packed, raw=True)
    model.graph.initializer.append(big)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString() + b"\x1a\x00" * (1 << 19))
    convert_file(tmp_path / "model.onnx", tmp_path / "out.onnx", 13)
    expected = (weights.reshape(1500, 1001).T - 1).astype(np.float32) * 0.5
    assert_equal(run(onnx.load(tmp_path / "out.onnx"), FEEDS), [expected])


def test_reports_the_replacement() -> None:
    model = model_of(MODELS["per axis"])
    sentence = "model: the integers of 4 and 2 bits were replaced by integers of 8 bits"
    assert plan_version(model, 20).repairs == (sentence,)
    assert plan_version(model, 22).repairs == ()


def test_refuses_casts_that_runtimes_round_differently() -> None:
    with pytest.raises(ConversionRefused, match="runtimes round a Cast from float to int4 differently"):
        convert_version(model_of("q = Cast<to = TYPE>(x) y = Cast<to = 1>(q)"), 20)


def test_refuses_unknown_operators_that_read_narrow_integers() -> None:
    model = model_of("q = QuantizeLinear(x, s, zp) y = acme.Op(q)")
    model.opset_import.add(domain="acme", version=1)
    with pytest.raises(ConversionRefused, match="int4"):
        convert_version(model, 20)


@pytest.mark.parametrize("position", ["input", "output"])
def test_refuses_models_that_pass_narrow_integers(position: str) -> None:
    body = "q = QuantizeLinear(x, s, zp) y = DequantizeLinear(q, s, zp)"
    model = model_of(body)
    value = helper.make_tensor_value_info("zp" if position == "input" else "q", TensorProto.INT4, [])
    getattr(model.graph, position).append(value)
    with pytest.raises(ConversionRefused, match="int4"):
        convert_version(model, 20)


def test_refuses_types_that_calls_determine() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (int32[4] x) => (float[4] y) { y = local.F<to = 22>(x) }
        <domain: "local", opset_import: ["" : 21]>
        F <to>(x) => (y) { q = Cast<to: int = @to>(x) y = Cast<to = 1>(q) }
    """
    model = parser.parse_model(text)
    with pytest.raises(ConversionRefused):
        convert_version(model, 20)


def test_refuses_invalid_data() -> None:
    model = model_of(MODELS["moved weight"])
    model.graph.initializer[-1].int32_data.pop()
    with pytest.raises(ConversionRefused):
        convert_version(model, 20)
