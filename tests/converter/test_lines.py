"""Nodes are read once, whatever is asked of them."""

from __future__ import annotations

from onnx import TensorProto, helper

from opshift import convert_version
from opshift.converter.rewrite.routes import router_for
from opshift.model.graphs import read_node_records
from opshift.opsets import OPSETS
from opshift.registry.registry import Registry

NODES = [
    helper.make_node("Relu", ["x"], ["y"]),
    helper.make_node("Split", ["y", ""], ["z", ""], domain="com.acme"),
]
GRAPH = helper.make_graph(NODES, "g", [], [])
FUNCTION = helper.make_function("com.acme", "F", ["x"], ["z"], NODES, [])


def test_a_line_says_what_a_node_is_and_what_it_reads_and_makes() -> None:
    for each in (GRAPH, FUNCTION):
        assert [line[1:] for line in read_node_records(each)] == [
            ("", "Relu", ("x",), ("y",)),
            ("com.acme", "Split", ("y", ""), ("z", "")),
        ]


def test_what_the_survey_reads_is_kept_where_steps_asked_before() -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "y")]
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)
    registry = Registry((OPSETS,))
    router = router_for(registry, frozenset({("ai.onnx", 13)}))
    assert router.fact_querying_opsets == set()
    first = convert_version(model, 13, registry=registry)
    assert router.fact_querying_opsets == {12}
    assert convert_version(model, 13, registry=registry) == first
