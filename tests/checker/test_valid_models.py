"""Unusual models that break no rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from support.checker_cases.case import Change, apply_all, field_at, parse_text, set_field, violated_rules

RELU = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
HEADER = '<ir_version: {ir}, opset_import: ["": {opset}]> '

UNKNOWN_DOMAIN = "operator of an unknown domain"
UNUSUAL_MODELS = {
    "default domain spelled ai.onnx": "g (float[2] x) => (float[2] y) { y = ai.onnx.Relu(x) }",
    "private attribute": "g (float[2] x) => (float[2] y) { y = Relu <__note = 1> (x) }",
    "omitted optional input": "g (float[2] x, float h) => (float[2] y) { y = Clip(x, , h) }",
    "omitted optional output": """g (float[4] x) => (int64[N] i) { y, , i = Unique(x) }""",
    "variadic inputs": "g (float[2] x) => (float[2] y) { y = Sum(x, x, x, x, x, x, x, x, x) }",
    "long string": "g (float[2,2] x) => (float[2,2] y) { y = Einsum <equation = EQUATION> (x, x) }".replace(
        "EQUATION", f'"ij,{" " * 80}jk->ik"'
    ),
    "unknown dimensions": "g (float[N, ?] x) => (float[N, M] y) { y = Relu(x) }",
    "no elements in an initializer": "g (float[0] x) => (float[0] y) <float[0] w = {}> { y = Add(x, w) }",
    "scalar initializer": "g (float x) => (float y) <float w = {1}> { y = Add(x, w) }",
    UNKNOWN_DOMAIN: """<ir_version: 10, opset_import: ["": 21, "com.acme": 3]>
    g (float[2] x) => (int64[2] y) { y = com.acme.Twist <angle = 90> (x, x, x) }""",
    "inferred types": """g (float[2] x) => (int64[1] y, bool[2] z) {
      s = Shape(x)  y = Identity(s)  n = Cast <to = 7> (x)  z = Equal(n, n)
    }""",
    "two branches with the same names": """g (float[2] x, bool c) => (float[2] y) {
      y = If (c) <then_branch = t () => (p) { p = Relu(x) }, else_branch = e () => (p) { p = Neg(x) }>
    }""",
    "subgraph that reads from two outer graphs": """g (float[2] x, bool c) => (float[2] y) {
      a = Neg(x)
      y = If (c) <
        then_branch = t () => (p) {
          b = Neg(a)
          p = If (c) <
            then_branch = u () => (q) { q = Add(x, b) },
            else_branch = v () => (q) { q = Add(a, b) }
          >
        },
        else_branch = e () => (p) { p = Identity(a) }
      >
    }""",
    "loop with a scan output": """g (int64 m, float[2] x) => (float[2] y, float[N,2] z) {
      y, z = Loop (m, , x) <body = b (i, go, before) => (on, after, each) {
        on = Identity(go)  after = Relu(before)  each = Neg(before)
      }>
    }""",
    "nested functions with default attributes": """<ir_version: 10, opset_import: ["": 21, "acme": 1]>
    g (float[2] x) => (float[2] y) { y = acme.F(x) }
    <domain: "acme", opset_import: ["": 21, "acme": 1]> F <slope: float = 0.5> (a) => (b) {
      b = acme.G <slope: float = @slope> (a)
    }
    <domain: "acme", opset_import: ["": 20]> G <slope> (a) => (b) {
      b = LeakyRelu <alpha: float = @slope> (a)
    }""",
    "function call with fewer inputs": """<ir_version: 10, opset_import: ["": 21, "acme": 1]>
    g (float[2] x) => (float[2] y) { y = acme.F(x) }
    <domain: "acme", opset_import: ["": 21]> F (a, low) => (b, c) { b = Clip(a, low)  c = Neg(a) }""",
    "training outputs of an old BatchNormalization": HEADER.format(ir=10, opset=8)
    + """g (float[1,2,3] x, float[2] s) => (float[1,2,3] y) {
      y, m, v, a, b = BatchNormalization(x, s, s, s, s)
    }""",
    "optional output of Dropout": "g (float[2] x) => (float[2] y) { y, z = Dropout(x) }",
    "sequence": "g (float[2] x) => (seq(float[2]) y) { y = SequenceConstruct(x, x) }",
    "initializer that is also a graph input": HEADER.format(ir=3, opset=8)
    + "g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add(x, w) }",
}


@pytest.mark.parametrize("text", UNUSUAL_MODELS.values(), ids=UNUSUAL_MODELS)
def test_accepts_unusual_model(text: str) -> None:
    model = parse_text(text)
    onnx.checker.check_model(_with_empty_default_domain(model))
    found = {each for each in violated_rules(model) if not each.startswith("model.ir-version-of")}
    assert found == ({"node.undefined"} if text is UNUSUAL_MODELS[UNKNOWN_DOMAIN] else set())


def _with_empty_default_domain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy that spells the default domain as ONNX's checker does."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        if node.domain == "ai.onnx":
            node.domain = ""
    return copy


def initializer(element_type: int, dims: list[int], **fields: Any) -> Callable[[onnx.ModelProto], None]:
    """Return a change that replaces the initializer of a model and casts it to float."""

    def change(model: onnx.ModelProto) -> None:
        model.graph.node[0].op_type = "Cast"
        model.graph.node[0].attribute.append(helper.make_attribute("to", TensorProto.FLOAT))
        model.graph.node[0].input[:] = ["w"]
        model.graph.initializer[0].CopyFrom(
            TensorProto(name="w", data_type=element_type, dims=dims, **fields)
        )
        model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, dims))

    return change


WITH_INITIALIZER = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
INITIALIZERS = {
    "three 4-bit elements, two per entry": initializer(TensorProto.INT4, [3], int32_data=[0x21, 0x3]),
    "three 4-bit elements, all in one entry": initializer(TensorProto.UINT4, [3], int32_data=[0x321]),
    "three 4-bit elements in raw data": initializer(TensorProto.INT4, [3], raw_data=b"\x21\x03"),
    "float16 in int32_data": initializer(TensorProto.FLOAT16, [2], int32_data=[0x3C00, 0]),
    "booleans in raw data": initializer(TensorProto.BOOL, [2], raw_data=b"\x00\x01"),
    "large unsigned integers": initializer(TensorProto.UINT32, [2], uint64_data=[2**32 - 1, 0]),
    "8-bit floats": initializer(TensorProto.FLOAT8E4M3FN, [2], raw_data=b"\x00\x01"),
    "tensor without elements": initializer(TensorProto.FLOAT, [2, 0, 3]),
}


@pytest.mark.parametrize("change", INITIALIZERS.values(), ids=INITIALIZERS)
def test_accepts_initializer(change: Change) -> None:
    model = parse_text(WITH_INITIALIZER)
    change(model)
    onnx.checker.check_model(model)
    assert violated_rules(model) == set()


SOFTMAX = HEADER.format(ir=10, opset=21) + "g (float[2] x) => (float[2] y) { y = Softmax <axis = 0> (x) }"
UNUSUAL_FIELDS: dict[str, tuple[str, Change]] = {
    "number equal to the default of its field": (SOFTMAX, set_field("graph.node[0].attribute[0].i", None)),
    "untyped attribute of IR version 1": (
        HEADER.format(ir=1, opset=1) + "g (float[2] x) => (float[2] y) { y = Softmax <axis = 0> (x) }",
        apply_all(set_field("graph.node[0].attribute[0].type", None), set_field("opset_import", None)),
    ),
    "input with an equal value_info entry": (
        RELU,
        lambda model: model.graph.value_info.add().CopyFrom(field_at(model, "graph.input[0]")),
    ),
    "no inputs and outputs": ("g () => () { }", lambda model: None),
}


@pytest.mark.parametrize(("text", "change"), UNUSUAL_FIELDS.values(), ids=UNUSUAL_FIELDS)
def test_accepts_unusual_fields(text: str, change: Change) -> None:
    model = parse_text(text)
    change(model)
    assert violated_rules(model) - {"model.ir-version-of-opset"} == set()
