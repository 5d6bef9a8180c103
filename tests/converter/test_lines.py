"""Nodes are read once, whatever is asked of them."""

from __future__ import annotations

from onnx import helper

from opshift.converter.lines import Lines

NODES = [
    helper.make_node("Relu", ["x"], ["y"]),
    helper.make_node("Split", ["y", ""], ["z", ""], domain="com.acme"),
]
GRAPH = helper.make_graph(NODES, "g", [], [])
FUNCTION = helper.make_function("com.acme", "F", ["x"], ["z"], NODES, [])


def test_a_line_says_what_a_node_is_and_what_it_reads_and_makes() -> None:
    for container in (GRAPH, FUNCTION):
        assert [line[1:] for line in Lines().of(container)] == [
            ("", "Relu", ["x"], ["y"]),
            ("com.acme", "Split", ["y", ""], ["z", ""]),
        ]


def test_each_graph_is_read_once() -> None:
    lines = Lines()
    assert lines.of(GRAPH) is lines.of(GRAPH)
    assert lines.of(GRAPH) is not lines.of(FUNCTION)
