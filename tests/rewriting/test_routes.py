"""Precompiled routes and adapters are equal to the version graph and the adapter table."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path
from typing import NoReturn

import networkx as nx
import pytest

from opshift import convert, default_registry
from opshift.adapters.core.adapter_table import StepKey, adapter_table
from opshift.opsets import OPSETS
from opshift.registry.errors import DefinitionError
from opshift.registry.models import Operator
from opshift.registry.registry import Registry
from opshift.rewriting import routes as module
from opshift.rewriting.routes import LazyAdapterTable, precompiled_path
from opshift.rewriting.version_graph import build_version_graph

pytestmark = pytest.mark.every_case

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "segmenter-9.onnx"
OPERATORS = {f"{each.domain}.{each.name}": each for each in default_registry().operators()}
RELU = OPERATORS["ai.onnx.Relu"]
NO_ROUTES: dict[str, dict[str, object]] = {"operators": {}, "adapters": {}}


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_precompiled_route_is_a_shortest_path(operator: Operator) -> None:
    graph = build_version_graph([operator], adapter_table())
    graph = graph.edge_subgraph(nx.get_edge_attributes(graph, "step"))
    for start, end in permutations(graph, 2):
        path = precompiled_path(operator, start.since_version, end.since_version)
        if not nx.has_path(graph, start, end):
            assert path is None
            continue
        assert path is not None
        steps = [
            (start._replace(since_version=a), start._replace(since_version=b)) for a, b in pairwise(path)
        ]
        assert (steps[0][0], steps[-1][1]) == (start, end)
        assert all(graph.has_edge(*step) for step in steps)
        assert len(steps) == nx.shortest_path_length(graph, start, end)


def test_ignores_operators_with_other_versions() -> None:
    newest = RELU.versions[-1].since_version
    assert precompiled_path(RELU, 1, newest) is not None
    assert precompiled_path(replace(RELU, versions=RELU.versions[:-1]), 1, 6) is None


def test_ignores_operators_of_other_domains() -> None:
    assert precompiled_path(replace(RELU, domain="com.acme"), 1, 6) is None


def test_precompiled_table_equals_the_adapter_table() -> None:
    table = LazyAdapterTable()
    assert set(table) == set(adapter_table())
    assert len(table) == len(adapter_table())
    assert all(pair in table and table[pair] is function for pair, function in adapter_table().items())
    assert StepKey("ai.onnx", "Relu", 1, 14) not in table


def test_conversion_builds_graphs_if_another_definition_is_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> NoReturn:
        raise DefinitionError("invalid")

    monkeypatch.setattr(module, "routes_text", fail)
    assert module.precompiled_routes.__wrapped__() == NO_ROUTES


def test_conversion_is_the_same_without_precompiled_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    model, report = convert(GOLDEN, 17, registry=Registry((OPSETS,)))
    monkeypatch.setattr(module, "precompiled_routes", lambda: NO_ROUTES)
    uncompiled = convert(GOLDEN, 17, registry=Registry((OPSETS,)))
    assert report.changed
    assert uncompiled.model == model
    assert uncompiled.report == report
