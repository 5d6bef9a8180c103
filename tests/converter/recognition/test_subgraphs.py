"""Recognition of expansions with a subgraph, and of expansions for sizes that an input has."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator
from support.execution import op_types, run

from opshift import convert_version, plan_version

INPUTS = {
    "query": "[2, 5, 16]",
    "key": "[2, 5, 8]",
    "value": "[2, 5, 6]",
    "past": "[2, 2, 4, 3]",
    "decay": "[2, 5, 8]",
    "beta": "[2, 5, 2]",
}
"""Inputs of LinearAttention for 4 query heads, and 2 heads of keys of size 4 and of values of size 3."""


def attention(rule: str, inputs: str, attributes: str = "", element_type: str = "float") -> onnx.ModelProto:
    """Return a model with a LinearAttention node that has these inputs, separated by commas."""
    given = [each for each in inputs.split(", ") if each != '""']
    declared = ", ".join(f"{element_type}{INPUTS[each]} {each}" for each in given)
    return onnx.parser.parse_model(
        f"""
        <ir_version: 10, opset_import: ["" : 27]>
        g ({declared}) => ({element_type}[2, 5, 12] y, {element_type}[2, 2, 4, 3] state) {{
            y, state = LinearAttention
                <q_num_heads = 4, kv_num_heads = 2, update_rule = "{rule}"{attributes}> ({inputs})
        }}
        """
    )


@pytest.mark.full  # the patterns take seconds to compile
@pytest.mark.parametrize("opset", [26, 10, 8, 7])
@pytest.mark.parametrize(
    ("rule", "inputs", "attributes", "element_type"),
    [
        ("linear", "query, key, value", "", "float"),
        ("linear", "query, key, value, past", ", scale = 0.25", "float"),
        ("gated", 'query, key, value, "", decay', "", "float"),
        ("delta", 'query, key, value, past, "", beta', "", "float16"),
        ("gated_delta", "query, key, value, past, decay, beta", "", "float"),
    ],
)
def test_restores_loop_over_tokens(
    rule: str, inputs: str, attributes: str, element_type: str, opset: int
) -> None:
    model = attention(rule, inputs, attributes, element_type)
    low = convert_version(model, opset)
    assert {"Scan", "Loop"}.intersection(op_types(low))
    high = convert_version(low, 27, recognize="LinearAttention")
    assert not {"Scan", "Loop", "MatMul", "Transpose"}.intersection(op_types(high))
    (node,) = (each for each in high.graph.node if each.op_type == "LinearAttention")
    before = {each.name: onnx.helper.get_attribute_value(each) for each in model.graph.node[0].attribute}
    after = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    if rule == "gated_delta":  # the default is not written
        del before["update_rule"]
    assert (node.input, node.output) == (model.graph.node[0].input, model.graph.node[0].output)
    assert after == before
    if element_type == "float":
        random = np.random.default_rng(0)
        feeds = {
            each.name: random.normal(0, 0.3, json.loads(INPUTS[each.name])).astype(np.float32)
            for each in model.graph.input
        }
        for computed, expected in zip(
            ReferenceEvaluator(high).run(None, feeds), run(low, feeds), strict=True
        ):
            np.testing.assert_allclose(computed, expected, atol=1e-6)


@pytest.mark.full  # the patterns take seconds to compile
@pytest.mark.parametrize("kernel", [2, 4])
@pytest.mark.parametrize("inputs", ["x, w", "x, w, bias", 'x, w, "", past', "x, w, bias, past"])
@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("length", ["8", "N"])
def test_restores_convolution_with_any_kernel_size(
    kernel: int, inputs: str, activation: str, length: str
) -> None:
    shapes = {"x": [2, 4, 8], "w": [4, 1, kernel], "bias": [4], "past": [2, 4, kernel - 1]}
    given = [each for each in inputs.split(", ") if each != '""']
    declared = ", ".join(f"float{shapes[each]} {each}" for each in given).replace("4, 8]", f"4, {length}]")
    model = onnx.parser.parse_model(
        f"""
        <ir_version: 10, opset_import: ["" : 27]>
        g ({declared}) => (float[2, 4, {length}] y, float[2, 4, {kernel - 1}] state) {{
            y, state = CausalConvWithState <activation = "{activation}"> ({inputs})
        }}
        """
    )
    low = convert_version(model, 26)
    high = convert_version(low, 27, recognize="CausalConvWithState")
    assert op_types(high) == ["CausalConvWithState"]
    random = np.random.default_rng(0)
    feeds = {each: random.normal(size=shapes[each]).astype(np.float32) for each in given}
    for computed, expected in zip(ReferenceEvaluator(high).run(None, feeds), run(low, feeds), strict=True):
        np.testing.assert_allclose(computed, expected, atol=1e-6)


def scan_of(model: onnx.ModelProto) -> onnx.NodeProto:
    """Return the Scan of a model."""
    return next(each for each in model.graph.node if each.op_type == "Scan")


def subtract(model: onnx.ModelProto) -> None:
    """Subtract from the state in the body."""
    body = scan_of(model).attribute[0].g
    next(each for each in body.node if each.op_type == "Add").op_type = "Sub"


def read_first_state(model: onnx.ModelProto) -> None:
    """Read the state before the last token by the query."""
    body = scan_of(model).attribute[0].g
    body.node[-1].input[1] = body.input[0].name


def return_tokens(model: onnx.ModelProto) -> None:
    """Return the results of the Scan, too."""
    model.graph.output.add(name=scan_of(model).output[1])


def capture_tokens(model: onnx.ModelProto) -> None:
    """Let a subgraph of another node read the results of the Scan."""
    name = scan_of(model).output[1]
    branch = f"(float[5, 2, 2, 2, 3] other) {{ other = Neg ({name}) }}"
    extra = onnx.parser.parse_graph(
        f"g (bool c) => (float z) {{ z = If (c) <then_branch = t () => {branch},"
        f" else_branch = e () => {branch}> }}"
    )
    model.graph.input.append(extra.input[0])
    model.graph.node.append(extra.node[0])
    model.graph.output.add(name="z")


@pytest.mark.full  # the patterns take seconds to compile
@pytest.mark.parametrize("change", [subtract, read_first_state, return_tokens, capture_tokens])
def test_keeps_other_loops(change: Callable[[onnx.ModelProto], None]) -> None:
    low = convert_version(attention("linear", "query, key, value"), 26)
    change(low)
    assert "Scan" in op_types(convert_version(low, 27, recognize="LinearAttention"))


@pytest.mark.full  # the patterns take seconds to compile
def test_ignores_nodes_without_used_result() -> None:
    low = convert_version(attention("linear", "query, key, value"), 26)
    low.graph.node.add(op_type="Neg", input=[scan_of(low).output[1]], output=["unused"])
    low.graph.node.add(op_type="Abs", input=["unused"], output=["unused_too"])
    assert op_types(convert_version(low, 27, recognize="LinearAttention")) == ["LinearAttention"]


def crop(shape: str, attributes: str = "", x: str = "float[5, N, 3]") -> onnx.ModelProto:
    """Return a model with a CenterCropPad node of a computed shape."""
    return onnx.parser.parse_model(
        f"""
        <ir_version: 10, opset_import: ["" : 18]>
        g ({x} x, {shape} shape) => (float y) {{ y = CenterCropPad {attributes} (x, shape) }}
        """
    )


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (crop("int64[3]"), [3, 8, 3]),
        (crop("int64[3]"), [7, 1, 2]),
        (crop("int64[2]", "<axes = [0, 1]>"), [2, 9]),
        (crop("int64[1]", "<axes = [1]>"), [1]),
    ],
)
def test_restores_crop_to_computed_sizes(model: onnx.ModelProto, shape: list[int]) -> None:
    low = convert_version(model, 17)
    assert len(low.graph.node) > 10
    high = convert_version(low, 18, recognize="CenterCropPad")
    assert high.graph.node[:] == model.graph.node[:]
    feeds = {"x": np.arange(60, dtype=np.float32).reshape(5, 4, 3), "shape": np.array(shape)}
    np.testing.assert_array_equal(run(low, feeds)[0], run(high, feeds)[0])


@pytest.mark.parametrize(
    ("shape", "x"),
    [
        ("int64[K]", "float[5, N, 3]"),
        ("int64[1]", "float[5, N, 3]"),
        ("int64[3]", "float[]"),
    ],
)
def test_keeps_crop_of_other_number_of_sizes(shape: str, x: str) -> None:
    low = convert_version(crop("int64[3]"), 17)
    given = crop(shape, x=x).graph.input
    del low.graph.input[:]
    low.graph.input.extend(given)
    plan = plan_version(low, 18, recognize="CenterCropPad")
    assert plan.recognition is not None
    assert not plan.recognition.nodes
