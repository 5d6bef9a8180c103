"""Models that look odd and break no rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from support.legality.case import Change, at, doing, parsed, rules_broken, setting

RELU = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
OLD = '<ir_version: {ir}, opset_import: ["": {opset}]> '

LEGAL = {
    "the default domain under its other name": "g (float[2] x) => (float[2] y) { y = ai.onnx.Relu(x) }",
    "a private attribute": "g (float[2] x) => (float[2] y) { y = Relu <__note = 1> (x) }",
    "an optional input left out": "g (float[2] x, float h) => (float[2] y) { y = Clip(x, , h) }",
    "an optional output left out": """g (float[4] x) => (int64[N] i) { y, , i = Unique(x) }""",
    "any number of inputs": "g (float[2] x) => (float[2] y) { y = Sum(x, x, x, x, x, x, x, x, x) }",
    "a long text": "g (float[2,2] x) => (float[2,2] y) { y = Einsum <equation = EQUATION> (x, x) }".replace(
        "EQUATION", f'"ij,{" " * 80}jk->ik"'
    ),
    "dimensions that are not known": "g (float[N, ?] x) => (float[N, M] y) { y = Relu(x) }",
    "no elements": "g (float[0] x) => (float[0] y) <float[0] w = {}> { y = Add(x, w) }",
    "a scalar": "g (float x) => (float y) <float w = {1}> { y = Add(x, w) }",
    "an operator that nobody defined": """<ir_version: 10, opset_import: ["": 21, "com.acme": 3]>
    g (float[2] x) => (int64[2] y) { y = com.acme.Twist <angle = 90> (x, x, x) }""",
    "types that only inference tells": """g (float[2] x) => (int64[1] y, bool[2] z) {
      s = Shape(x)  y = Identity(s)  n = Cast <to = 7> (x)  z = Equal(n, n)
    }""",
    "two branches with the same names": """g (float[2] x, bool c) => (float[2] y) {
      y = If (c) <then_branch = t () => (p) { p = Relu(x) }, else_branch = e () => (p) { p = Neg(x) }>
    }""",
    "a graph that reads from two graphs around": """g (float[2] x, bool c) => (float[2] y) {
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
    "a loop that collects": """g (int64 m, float[2] x) => (float[2] y, float[N,2] z) {
      y, z = Loop (m, , x) <body = b (i, go, before) => (on, after, each) {
        on = Identity(go)  after = Relu(before)  each = Neg(before)
      }>
    }""",
    "a function in a function, each with its defaults": """<ir_version: 10, opset_import: ["": 21, "acme": 1]>
    g (float[2] x) => (float[2] y) { y = acme.F(x) }
    <domain: "acme", opset_import: ["": 21, "acme": 1]> F <slope: float = 0.5> (a) => (b) {
      b = acme.G <slope: float = @slope> (a)
    }
    <domain: "acme", opset_import: ["": 20]> G <slope> (a) => (b) {
      b = LeakyRelu <alpha: float = @slope> (a)
    }""",
    "a function that is called with fewer inputs": """<ir_version: 10, opset_import: ["": 21, "acme": 1]>
    g (float[2] x) => (float[2] y) { y = acme.F(x) }
    <domain: "acme", opset_import: ["": 21]> F (a, low) => (b, c) { b = Clip(a, low)  c = Neg(a) }""",
    "training outputs of an old BatchNormalization": OLD.format(ir=10, opset=8)
    + """g (float[1,2,3] x, float[2] s) => (float[1,2,3] y) {
      y, m, v, a, b = BatchNormalization(x, s, s, s, s)
    }""",
    "outputs that a Dropout may have": "g (float[2] x) => (float[2] y) { y, z = Dropout(x) }",
    "a sequence": "g (float[2] x) => (seq(float[2]) y) { y = SequenceConstruct(x, x) }",
    "a default that is an input, as all were once": OLD.format(ir=3, opset=8)
    + "g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add(x, w) }",
}


@pytest.mark.parametrize("text", LEGAL.values(), ids=LEGAL)
def test_no_rule_objects_to(text: str) -> None:
    model = parsed(text)
    onnx.checker.check_model(_respelled(model))
    assert {each for each in rules_broken(model) if not each.startswith("model.ir-version-of")} == set()


def _respelled(model: onnx.ModelProto) -> onnx.ModelProto:
    """The checker knows the default domain by one of its names only."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        if node.domain == "ai.onnx":
            node.domain = ""
    return copy


def weight(kind: int, dims: list[int], **fields: Any) -> Callable[[onnx.ModelProto], None]:
    """Make the weight of a model another tensor, and cast it."""

    def change(model: onnx.ModelProto) -> None:
        model.graph.node[0].op_type = "Cast"
        model.graph.node[0].attribute.append(helper.make_attribute("to", TensorProto.FLOAT))
        model.graph.node[0].input[:] = ["w"]
        model.graph.initializer[0].CopyFrom(TensorProto(name="w", data_type=kind, dims=dims, **fields))
        model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, dims))

    return change


WEIGHT = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
TENSORS = {
    "three elements of 4 bits, two in an entry": weight(TensorProto.INT4, [3], int32_data=[0x21, 0x3]),
    "three elements of 4 bits, all in an entry": weight(TensorProto.UINT4, [3], int32_data=[0x321]),
    "three elements of 4 bits as bytes": weight(TensorProto.INT4, [3], raw_data=b"\x21\x03"),
    "halves as whole numbers": weight(TensorProto.FLOAT16, [2], int32_data=[0x3C00, 0]),
    "truth values as bytes": weight(TensorProto.BOOL, [2], raw_data=b"\x00\x01"),
    "large numbers without a sign": weight(TensorProto.UINT32, [2], uint64_data=[2**32 - 1, 0]),
    "floats of 8 bits": weight(TensorProto.FLOAT8E4M3FN, [2], raw_data=b"\x00\x01"),
    "a tensor without elements": weight(TensorProto.FLOAT, [2, 0, 3]),
}


@pytest.mark.parametrize("change", TENSORS.values(), ids=TENSORS)
def test_a_weight_may_be(change: Change) -> None:
    model = parsed(WEIGHT)
    change(model)
    onnx.checker.check_model(model)
    assert rules_broken(model) == set()


SOFTMAX = OLD.format(ir=10, opset=21) + "g (float[2] x) => (float[2] y) { y = Softmax <axis = 0> (x) }"
ODD: dict[str, tuple[str, Change]] = {
    "a number that is its field's default": (SOFTMAX, setting("graph.node[0].attribute[0].i", None)),
    "an attribute of IR version 1, without its type": (
        OLD.format(ir=1, opset=1) + "g (float[2] x) => (float[2] y) { y = Softmax <axis = 0> (x) }",
        doing(setting("graph.node[0].attribute[0].type", None), setting("opset_import", None)),
    ),
    "an input that is stated twice alike": (
        RELU,
        lambda model: model.graph.value_info.add().CopyFrom(at(model, "graph.input[0]")),
    ),
    "no inputs and outputs": ("g () => () { }", lambda model: None),
}


@pytest.mark.parametrize(("text", "change"), ODD.values(), ids=ODD)
def test_a_model_may_have(text: str, change: Change) -> None:
    model = parsed(text)
    change(model)
    assert rules_broken(model) - {"model.ir-version-of-opset"} == set()
