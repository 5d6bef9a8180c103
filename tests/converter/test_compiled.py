"""`converter/compiled.json`: routes of the graph and the table of adapters, and no more than a shortcut."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path

import networkx as nx
import pytest

from opshift import convert, default_registry
from opshift.adapters.table import Pair, adapter_table
from opshift.converter import compiled as module
from opshift.converter.compiled import CompiledTable, compiled_path
from opshift.converter.lineage import lineage
from opshift.registry.catalogue import Registry
from opshift.registry.definition_files import OPSETS
from opshift.registry.models import Operator

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "segmenter-9.onnx"
OPERATORS = {f"{each.domain}.{each.name}": each for each in default_registry().operators()}
RELU = OPERATORS["ai.onnx.Relu"]
NOTHING: dict[str, dict[str, object]] = {"operators": {}, "adapters": {}}


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_a_route_is_a_shortest_path_of_the_graph(operator: Operator) -> None:
    graph = lineage(operator, adapter_table())
    for start, goal in permutations(graph, 2):
        path = compiled_path(operator, start.since_version, goal.since_version)
        if not nx.has_path(graph, start, goal):
            assert path is None
            continue
        assert path is not None
        steps = [
            (start._replace(since_version=a), start._replace(since_version=b)) for a, b in pairwise(path)
        ]
        assert (steps[0][0], steps[-1][1]) == (start, goal)
        assert all(graph.has_edge(*step) for step in steps)
        assert len(steps) == nx.shortest_path_length(graph, start, goal)


def test_an_operator_with_other_versions_has_no_compiled_route() -> None:
    newest = RELU.versions[-1].since_version
    assert compiled_path(RELU, 1, newest) is not None
    assert compiled_path(replace(RELU, versions=RELU.versions[:-1]), 1, 6) is None


def test_an_operator_of_another_domain_has_no_compiled_route() -> None:
    assert compiled_path(replace(RELU, domain="com.acme"), 1, 6) is None


def test_the_compiled_table_is_the_table() -> None:
    table = CompiledTable()
    assert set(table) == set(adapter_table())
    assert len(table) == len(adapter_table())
    assert all(pair in table and table[pair] is function for pair, function in adapter_table().items())
    assert Pair("ai.onnx", "Relu", 1, 14) not in table


def test_a_conversion_is_the_same_where_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    model, report = convert(GOLDEN, 17, registry=Registry((OPSETS,)))
    monkeypatch.setattr(module, "compiled", lambda: NOTHING)
    by_the_graph = convert(GOLDEN, 17, registry=Registry((OPSETS,)))
    assert report.changed
    assert by_the_graph.model == model
    assert by_the_graph.report == report
