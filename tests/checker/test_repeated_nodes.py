"""Nodes, tensors and values are checked even if earlier ones that resemble them break no rule."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto
from support.checker_cases.case import parse_text, value, violated_rules

from opshift.checker.check import Walk, check
from opshift.checker.checked_model import CheckedModel
from opshift.checker.checked_nodes import CheckedNode
from opshift.checker.containers import CheckedGraph
from opshift.model.messages import ModelProto
from opshift.registry.registry import default_registry

FLOAT, FLOAT6 = TensorProto.FLOAT, 27

LAST_NODES = {
    "element type": (
        "(float[2] x, bool[2] b) => (z)",
        ["a = Neg(x)", "c = Neg(x)", "z = Neg(b)"],
        "type.input",
    ),
    "shape": (
        "(float[2,3] x, float[3,4] w, float[5,4] v) => (z)",
        ["a = MatMul(x, w)", "b = MatMul(x, w)", "z = MatMul(x, v)"],
        "shape.inputs",
    ),
    "rank below an axis": (
        "(float[2,3] x, float[2] w) => (z)",
        ["a = Softmax <axis = 1> (x)", "b = Softmax <axis = 1> (x)", "z = Softmax <axis = 1> (w)"],
        "node.axis",
    ),
    "constant axes": (
        "(float[1,1] x) => (z) <int64[1] one = {1}, int64[1] five = {5}>",
        ["a = Squeeze(x, one)", "b = Squeeze(x, one)", "c = Squeeze(x, one)", "z = Squeeze(x, five)"],
        "node.axis",
    ),
    "constant axis": (
        "(float[2,3] x) => (z) <int64 one = {1}, int64 five = {5}>",
        ["a = CumSum(x, one)", "b = CumSum(x, one)", "c = CumSum(x, one)", "z = CumSum(x, five)"],
        "node.axis",
    ),
    "constant shape": (
        "(float[2,3] x) => (z) <int64[1] six = {6}, int64[1] five = {5}>",
        ["a = Reshape(x, six)", "b = Reshape(x, six)", "c = Reshape(x, six)", "z = Reshape(x, five)"],
        "shape.inputs",
    ),
    "omitted input": (
        "(float[2] x) => (z)",
        ["a = Sum(x, x, x)", "b = Sum(x, x, x)", "z = Sum(x, , x)"],
        "node.input-missing",
    ),
    "attribute": (
        "(float[2] x) => (z)",
        ["a = Cast <to = 1> (x)", "b = Cast <to = 1> (x)", "z = Cast <to = 99> (x)"],
        "node.attribute-type-code",
    ),
    "output name": ("(float[2] x) => (y)", ["a = Neg(x)", "y = Neg(x)", "y = Neg(x)"], "value.unique"),
    "two omitted outputs, output name": (
        "(float[2] x) => (y)",
        ["a, , = Split <num_outputs = 3> (x)", "b, , = Split <num_outputs = 3> (x)", "b = Neg(x)"],
        "value.unique",
    ),
    "order": ("(float[2] x) => (z)", ["a = Neg(x)", "b = Neg(x)", "z = Neg(w)", "w = Neg(x)"], "value.order"),
}
"""Signature of a graph, its nodes, and the rule that the last node, or the last but one, breaks."""

FUNCTIONS = {
    "constant axes in a function": (
        "",
        [
            "one = Constant <value_ints = [1]> ()",
            "five = Constant <value_ints = [5]> ()",
            "c = Unsqueeze(a, one)",
            "d = Unsqueeze(a, one)",
            "e = Unsqueeze(a, one)",
            "b = Unsqueeze(a, five)",
        ],
    ),
    "axis in a function": (
        "",
        ["c = Softmax <axis = 1> (a)", "d = Softmax <axis = 1> (c)", "b = Softmax <axis = 5> (d)"],
    ),
    "rank in a function": (
        "",
        [
            "one = Constant <value_ints = [1]> ()",
            "c = Softmax <axis = 1> (a)",
            "d = Softmax <axis = 1> (a)",
            "e = ReduceSum <keepdims = 0> (d, one)",
            "b = Softmax <axis = 1> (e)",
        ],
    ),
    "attribute of a call": ("<axis>", ["c = Softmax <axis = 1> (a)", "b = Softmax <axis: int = @axis> (c)"]),
}
"""Attributes and nodes of a function that is called with a value of rank 2 and with the axis 5."""


@pytest.mark.parametrize(("signature", "nodes", "rule"), LAST_NODES.values(), ids=LAST_NODES)
def test_checks_the_last_node(signature: str, nodes: list[str], rule: str) -> None:
    text = f"g {signature} {{ {'  '.join(nodes)} }}"
    assert rule in violated_rules(parse_text(text))


@pytest.mark.parametrize(("attributes", "nodes"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_checks_the_last_node_of_a_function(attributes: str, nodes: list[str]) -> None:
    text = f"""<ir_version: 10, opset_import: ["": 21, "acme": 1]>
        g (float[2,3] x) => (y) {{ y = acme.F {"<axis = 5>" if attributes else ""} (x) }}
        <domain: "acme", opset_import: ["": 21]> F {attributes} (a) => (b) {{ {"  ".join(nodes)} }}"""
    assert "node.axis" in violated_rules(parse_text(text))


def test_checks_references_in_each_function() -> None:
    node = "b = Softmax <axis: int = @axis> (a)"
    text = f"""<ir_version: 10, opset_import: ["": 21, "acme": 1]>
        g (float[2,3] x) => (z) {{ y = acme.F <axis = 1> (x)  z = acme.G (y) }}
        <domain: "acme", opset_import: ["": 21]> F <axis> (a) => (b) {{ {node} }}
        <domain: "acme", opset_import: ["": 21]> G (a) => (b) {{ {node} }}"""
    found = [each.place for each in check(parse_text(text)) if each.rule == "attribute.reference-known"]
    assert len(found) == 1
    assert "G" in found[0]


TENSORS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "number of elements": ({"float_data": [1, 2]}, {"float_data": [1]}, "tensor.size"),
    "number of bytes": ({"raw_data": bytes(8)}, {"raw_data": bytes(4)}, "tensor.size"),
    "empty raw_data": ({"float_data": [1, 2]}, {"float_data": [1, 2], "raw_data": b""}, "tensor.single"),
    "field": ({"float_data": [1, 2]}, {"int32_data": [1, 2]}, "tensor.field"),
    "element type": ({"raw_data": bytes(8)}, {"raw_data": bytes(8), "data_type": 99}, "tensor.type"),
    "segment": ({"raw_data": bytes(8)}, {"raw_data": bytes(8), "segment": {"begin": 0}}, "tensor.segment"),
    "unused bits": (
        {"data_type": FLOAT6, "raw_data": b"\1\0"},
        {"data_type": FLOAT6, "raw_data": b"\1\xf0"},
        "tensor.bits",
    ),
    "entry with more than 6 bits": (
        {"data_type": FLOAT6, "int32_data": [1, 2]},
        {"data_type": FLOAT6, "int32_data": [1, 64]},
        "tensor.bits",
    ),
    "text": (
        {"data_type": TensorProto.STRING, "string_data": [b"a", b"b"]},
        {"data_type": TensorProto.STRING, "string_data": [b"a", b"\xff"]},
        "tensor.text",
    ),
    "metadata": (
        {"float_data": [1, 2], "metadata_props": [{"key": "a"}]},
        {"float_data": [1, 2], "metadata_props": [{"key": "a"}, {"key": "a"}]},
        "metadata.unique",
    ),
}
"""Fields of a tensor of shape [2], other fields, and the rule that tensors with the latter break."""


@pytest.mark.parametrize("place", ["initializer", "attribute"])
@pytest.mark.parametrize(("earlier", "last", "rule"), TENSORS.values(), ids=TENSORS)
def test_checks_each_tensor(earlier: dict[str, Any], last: dict[str, Any], rule: str, place: str) -> None:
    model = parse_text("g (float[2] x) => (y) { y = Neg(x) }")
    for number, fields in enumerate([earlier, earlier, earlier, last]):
        tensor = TensorProto(**{"name": f"t{number}", "data_type": FLOAT, "dims": [2], **fields})
        if place == "initializer":
            model.graph.initializer.append(tensor)
        else:
            node = onnx.helper.make_node("Constant", [], [f"c{number}"], value=tensor)
            model.graph.node.append(node)
    places = [each.place for each in check(model) if each.rule == rule]
    assert places
    assert all("t3" in each for each in places)


def test_checks_each_value() -> None:
    model = parse_text("g (float[2] x, float[2] w) => (y) { y = Sum(x, w) }")
    model.graph.input.append(value("v", shape=[-1]))
    model.graph.input.add(name="u")
    assert {"value.dimension", "value.type"} <= violated_rules(model)


def checked_graph(model: onnx.ModelProto) -> CheckedGraph:
    checked = CheckedModel(ModelProto.FromString(model.SerializeToString()), default_registry())
    return CheckedGraph(checked.proto.graph, "graph", checked, checked.opsets, is_top=True)


def test_nodes_with_omitted_values_are_regular() -> None:
    nodes = ["a, , = Split <num_outputs = 3> (x)", "b, , = Split <num_outputs = 3> (x)", "c = Clip(x, , x)"]
    graph = checked_graph(parse_text(f"g (float[3] x) => (c) {{ {'  '.join(nodes)} }}"))
    for record, proto in zip(graph.scope.node_records, graph.proto.node, strict=True):
        assert CheckedNode(record, proto, graph).is_regular
        graph.scope.defined_names.update(record[4])


@pytest.mark.parametrize(("length", "keys"), [(9, 1), (2000, 0)])
def test_cache_contains_no_large_node_keys(length: int, keys: int) -> None:
    attributes = f"<keys_int64s = {[*range(length)]}, values_int64s = {[*range(length)]}>"
    header = '<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 2]>'
    text = f"{header} g (int64[2] x) => (int64[2] y) {{ y = ai.onnx.ml.LabelEncoder {attributes} (x) }}"
    walk, graph = Walk(), checked_graph(parse_text(text))
    walk.run(graph.model)
    assert walk.findings == []
    assert sum(map(len, graph.model.passed_nodes.values())) == keys
