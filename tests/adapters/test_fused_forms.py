"""Emitted nodes have the form that runtimes fuse: onnxruntime replaces them by one operator."""

import tempfile
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import assert_equal

from opshift import convert_version

RANDOM = np.random.default_rng(0)
WIDTH = 32
BIASES = {name: RANDOM.normal(size=WIDTH).astype(np.float32) for name in ("s", "b")}
WEIGHTS = {**BIASES, "w": RANDOM.normal(size=(WIDTH, WIDTH)).astype(np.float32)}


def node(op_type: str, *inputs: str, to: str = "z", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs, [to], **attributes)


def vendor(op_type: str, *inputs: str, **attributes: Any) -> onnx.NodeProto:
    return node(op_type, *inputs, domain="com.microsoft", **attributes)


class Form(NamedTuple):
    """Nodes that compute `z`, their opset, the oldest target, and the operators that the optimizer finds."""

    nodes: list[onnx.NodeProto]
    opset: int
    oldest: int
    fused: list[str]
    shape: tuple[int, ...] = (2, 8, WIDTH)


SUM = node("Add", "x", "x2", to="u")
BIASED = node("Add", "x", "b", to="u")

FORMS = {
    "LayerNormalization": Form(
        [node("LayerNormalization", "x", "s", "b", epsilon=0.01)], 17, 7, ["LayerNormalization"]
    ),
    "LayerNormalization without bias": Form(
        [node("LayerNormalization", "x", "s")], 17, 7, ["LayerNormalization"]
    ),
    "LayerNormalization of a sum": Form(
        [SUM, node("LayerNormalization", "u", "s", "b")], 17, 7, ["SkipLayerNormalization"]
    ),
    "RMSNormalization": Form(
        [node("RMSNormalization", "x", "s", epsilon=0.01)], 23, 7, ["SimplifiedLayerNormalization"]
    ),
    "Gelu": Form([node("Gelu", "x")], 20, 9, ["Gelu"]),
    "Gelu of a biased value": Form([BIASED, node("Gelu", "u")], 20, 9, ["BiasGelu"]),
    "Gelu with tanh": Form([node("Gelu", "x", approximate="tanh")], 20, 7, ["FastGelu"]),
    "Swish": Form([node("Swish", "x")], 24, 7, ["QuickGelu"]),
    "Swish with alpha": Form([node("Swish", "x", alpha=1.7)], 24, 7, ["QuickGelu"]),
    "scaled MatMul": Form([vendor("FusedMatMul", "x", "w", transB=1, alpha=0.3)], 17, 9, ["FusedMatMul"]),
    "BiasGelu": Form([vendor("BiasGelu", "x", "b")], 17, 9, ["BiasGelu"]),
    "FastGelu": Form([vendor("FastGelu", "x")], 17, 7, ["FastGelu"]),
    "QuickGelu": Form([vendor("QuickGelu", "x", alpha=1.7)], 17, 7, ["QuickGelu"]),
    "SkipLayerNormalization": Form(
        [vendor("SkipLayerNormalization", "x", "x2", "s", "b")], 17, 7, ["SkipLayerNormalization"]
    ),
    "SimplifiedLayerNormalization": Form(
        [node("SimplifiedLayerNormalization", "x", "s")], 17, 7, ["SimplifiedLayerNormalization"]
    ),
    "FusedGemm": Form(
        [vendor("FusedGemm", "x", "w", "b", activation="Relu")], 17, 7, ["FusedGemm"], (8, WIDTH)
    ),
}


def model_of(form: Form) -> onnx.ModelProto:
    """Return a model that negates `z`: onnxruntime does not fuse all nodes with a graph output."""
    read = [name for each in form.nodes for name in each.input]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, form.shape)
        for name in ("x", "x2")
        if name in read
    ]
    tensors = [numpy_helper.from_array(array, name) for name, array in WEIGHTS.items() if name in read]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, form.shape)
    graph = helper.make_graph([*form.nodes, node("Neg", "z", to="y")], "g", inputs, [output], tensors)
    imports = [helper.make_opsetid("", form.opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def optimized(model: onnx.ModelProto) -> tuple[ort.InferenceSession, list[str]]:
    """Return a session with the extended optimizations of onnxruntime, and the operators that remain."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        options.optimized_model_filepath = file.name
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session, [each.op_type for each in onnx.load(file.name).graph.node]


def targets() -> Iterable[Any]:
    for name, form in FORMS.items():
        for target in range(form.oldest, form.opset + 1):
            if target < form.opset or form.nodes[-1].domain:
                yield pytest.param(form, target, id=f"{name}-{target}")


def converted(form: Form, target: int) -> onnx.ModelProto:
    return convert_version(model_of(form), target, without="com.microsoft", allow="approximate")


@pytest.mark.parametrize(("form", "target"), [*targets()])
def test_emits_the_form_that_runtimes_fuse(form: Form, target: int) -> None:
    result = converted(form, target)
    session, operators = optimized(result)
    assert operators == [*form.fused, "Neg"]
    original, _ = optimized(model_of(form))
    feeds = {each.name: RANDOM.normal(size=form.shape).astype(np.float32) for each in original.get_inputs()}
    assert_equal(session.run(None, feeds), original.run(None, feeds), 1e-5)


@pytest.mark.parametrize("target", [9, 11, 13])
def test_fuses_nodes_after_a_computed_reshape(target: int) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    main (float[N, M, 4, 8] x) => (float[N, M, 32] y)
    <int64[1] zero = {0}, int64[1] two = {2}, int64[1] width = {32}> {
        s = Shape (x)
        n = Slice (s, zero, two)
        sizes = Concat <axis = 0> (n, width)
        r = Reshape (x, sizes)
        z = LayerNormalization (r, s1, b1)
        y = Neg (z)
    }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(BIASES[name], f"{name}1") for name in ("s", "b"))
    result = convert_version(model, target)
    session, operators = optimized(result)
    assert "LayerNormalization" in operators
    feeds = {"x": RANDOM.normal(size=(2, 3, 4, 8)).astype(np.float32)}
    assert_equal(session.run(None, feeds), optimized(model)[0].run(None, feeds), 1e-5)
