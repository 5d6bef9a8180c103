"""Integers of 4 and 2 bits that stay inside of a model are replaced by integers of 8 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented
from support.running import assert_equal, run, run_reference

from opshift.converter.convert import convert_version, plan_version
from opshift.converter.errors import ConversionRefused
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
        q = QuantizeLinear<axis = 1, block_size = 3>(x, s42) y = DequantizeLinear<axis = 1, block_size = 3>(w, s42)
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
                c_out = Identity(c_in) d = DequantizeLinear(q_in, s) e = Add(d, x) q_out = QuantizeLinear(e, s, zp)
            }
        >
        y = DequantizeLinear(q, s)
    """,
    "shape and size": """
        h = Shape(w) g = Cast<to = 1>(h) n = Size(w) m = Cast<to = 1>(n) a = ReduceSum(g) b = Add(a, m) y = Add(x, b)
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
    except NotImplemented:
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
