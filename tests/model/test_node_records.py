"""Node records: each node is read once, for all consumers of its operator and value names."""

from __future__ import annotations

from onnx import TensorProto, helper

from opshift import convert_version
from opshift.model.graphs import read_node_records
from opshift.opsets import OPSETS
from opshift.registry.registry import Registry
from opshift.rewriting.router_for import router_for

NODES = [
    helper.make_node("Relu", ["x"], ["y"]),
    helper.make_node("Split", ["y", ""], ["z", ""], domain="com.acme"),
]
GRAPH = helper.make_graph(NODES, "g", [], [])
FUNCTION = helper.make_function("com.acme", "F", ["x"], ["z"], NODES, [])


def test_record_holds_operator_and_value_names() -> None:
    for each in (GRAPH, FUNCTION):
        assert [record[1:] for record in read_node_records(each)] == [
            ("", "Relu", ("x",), ("y",)),
            ("com.acme", "Split", ("y", ""), ("z", "")),
        ]


def test_keeps_records_of_opsets_with_fact_queries() -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "y")]
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)
    registry = Registry((OPSETS,))
    router = router_for(registry, frozenset({("ai.onnx", 13)}), frozenset())
    assert router.fact_querying_opsets == set()
    first = convert_version(model, 13, registry=registry)
    assert router.fact_querying_opsets == {12}
    assert convert_version(model, 13, registry=registry) == first
