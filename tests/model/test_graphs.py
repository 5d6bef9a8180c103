"""Walks over graphs, functions and training graphs."""

from __future__ import annotations

import onnx.parser

from opshift.model.graphs import nested_containers, nested_nodes, root_graphs, training_graphs
from opshift.model.messages import FunctionProto, GraphProto, ModelProto, TrainingInfoProto

NESTED = """
outer (bool c) => (float y) {
    y = If (c) <
        then_branch = first () => (float a) { a = Constant <value_float = 1.0> () },
        else_branch = second () => (float b) {
            b = If (c) <
                then_branch = third () => (float d) { d = Sqrt (e) },
                else_branch = fourth () => (float f) { f = Exp (e) }
            >
        }
    >
    z = Neg (y)
}
"""


def _graph() -> GraphProto:
    return GraphProto.FromString(onnx.parser.parse_graph(NESTED).SerializeToString())


def test_yields_each_graph_before_its_subgraphs() -> None:
    names = [graph.name for graph in nested_containers([_graph()])]
    assert sorted(names) == ["first", "fourth", "outer", "second", "third"]
    assert names[0] == "outer"
    assert names.index("second") < min(names.index("third"), names.index("fourth"))


def test_yields_nodes_of_all_levels() -> None:
    operators = sorted(node.op_type for node in nested_nodes(_graph()))
    assert operators == ["Constant", "Exp", "If", "If", "Neg", "Sqrt"]


def test_walks_functions() -> None:
    function = FunctionProto(name="f", node=_graph().node)
    assert len([*nested_containers([function])]) == 5


def test_yields_training_graphs_with_their_paths() -> None:
    info = TrainingInfoProto(initialization=GraphProto(name="i"), algorithm=GraphProto(name="a"))
    model = ModelProto(graph=GraphProto(name="main"), training_info=[info, info])
    assert [(each.path, each.graph.name) for each in training_graphs(model)] == [
        ("training_info[0].initialization", "i"),
        ("training_info[0].algorithm", "a"),
        ("training_info[1].initialization", "i"),
        ("training_info[1].algorithm", "a"),
    ]
    assert [graph.name for graph in root_graphs(model)] == ["main", "i", "a", "i", "a"]
