"""Nodes and edges of the version graph, and the checks of the operators that express others."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest

from opshift import default_registry
from opshift.adapters.core.adapter_table import adapter_table
from opshift.model.operator_ids import OperatorId
from opshift.registry.errors import DefinitionError
from opshift.registry.registry import Registry
from opshift.registry.step_rules import step_key
from opshift.rewriting.routes import compile_routes
from opshift.rewriting.version_graph import build_version_graph, check_expressions, shortest_paths
from opshift.rewriting.version_steps import VersionStep, build_steps

GRAPH = build_version_graph(default_registry().operators(), adapter_table())

OPERATORS = {
    "Old": """\
domain: com.acme
name: Old
versions:
- since_version: 1
  outputs: [{name: Y, type: tensor(float)}]
  removal: {removed_in: 3, replaced_by: New, mapping: use New, up: [rename_op: New]}
""",
    "New": """\
domain: com.acme
name: New
versions:
- since_version: 2
  inputs: [{name: X, type: tensor(float)}]
  outputs: [{name: Y, type: tensor(float)}]
  before: body
  body:
    opset_imports: {ai.onnx: 17, com.acme: 1}
    nodes:
    - {op_type: Relu, inputs: [X], outputs: [middle]}
    - {op_type: Helper, domain: com.acme, inputs: [middle], outputs: [Y]}
""",
    "Helper": """\
domain: com.acme
name: Helper
versions:
- since_version: 1
  inputs: [{name: X, type: tensor(float)}]
  outputs: [{name: Y, type: tensor(float)}]
""",
}


def _registry(tmp_path: Path, **operators: str) -> Registry:
    (tmp_path / "com.acme").mkdir()
    for name, text in operators.items():
        (tmp_path / "com.acme" / f"{name}.yaml").write_text(text, "utf-8")
    return default_registry().with_folder(tmp_path)


def _edges(graph: nx.DiGraph[OperatorId], source: str) -> set[tuple[str, str]]:
    edges = graph.out_edges(OperatorId.parse(source))
    return {(graph.edges[edge]["kind"], str(edge[1])) for edge in edges}


def test_has_every_version_of_every_operator() -> None:
    versions = {version.id for version in default_registry().get_all_schemas_with_history()}
    assert {node for node, version in nx.get_node_attributes(GRAPH, "version").items() if version} == versions


def test_connects_neighbouring_versions_in_both_directions() -> None:
    assert _edges(GRAPH, "Softmax:11") == {
        ("adapter", "ai.onnx.Softmax:1"),
        ("adapter", "ai.onnx.Softmax:13"),
    }


def test_connects_a_removed_operator_with_its_replacement() -> None:
    assert _edges(GRAPH, "Scale:1") == {("adapter", "ai.onnx.Scale:10")}
    assert _edges(GRAPH, "Scale:10") == {("replacement", "ai.onnx.Mul:7")}


def test_connects_a_deprecated_operator_with_its_replacement() -> None:
    assert ("replacement", "ai.onnx.Resize:10") in _edges(GRAPH, "Upsample:10")


def test_connects_a_function_with_the_operators_of_its_body() -> None:
    operators = {"ai.onnx.Softplus:1", "ai.onnx.Tanh:1", "ai.onnx.Mul:1"}
    assert {("body", each) for each in operators} < _edges(GRAPH, "Mish:18")
    assert _edges(GRAPH, "Mish:17") == {("replacement", each) for each in operators}


@pytest.mark.parametrize(
    ("source", "target", "kind", "element_types"),
    [
        ("Reshape:5", "Reshape:13", "compatible", frozenset()),
        ("Relu:13", "Relu:6", "guarded", frozenset({"bfloat16"})),
        ("Softmax:1", "Softmax:11", "compatible", frozenset()),
        ("Softmax:11", "Softmax:13", "adapter", None),
        ("ATen:1", "ATen:10", "refused", None),
    ],
)
def test_steps_have_a_kind_and_element_types(
    source: str, target: str, kind: str, element_types: frozenset[str] | None
) -> None:
    step: VersionStep = GRAPH.edges[OperatorId.parse(source), OperatorId.parse(target)]["step"]
    assert (step.kind, step.affected_element_types) == (kind, element_types)


def test_paths_follow_steps_only() -> None:
    assert all({each[:2] for each in path} == {path[0][:2]} for path in shortest_paths(GRAPH))


def test_includes_operators_of_a_vendor(tmp_path: Path) -> None:
    registry = _registry(tmp_path, **OPERATORS)
    graph = build_version_graph(registry.operators(), adapter_table())
    check_expressions(graph)
    assert _edges(graph, "com.acme.Old:3") == {("replacement", "com.acme.New:2")}
    assert _edges(graph, "com.acme.New:1") == {
        ("replacement", "ai.onnx.Relu:14"),
        ("replacement", "com.acme.Helper:1"),
    }
    assert json.loads(compile_routes(registry)["operators"]["com.acme.Old"]) == [[1], [1, 3]]


@pytest.mark.full
@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ("New", "com.acme.Old:3: the replacement New is not in opset 3 of com.acme"),
        ("Helper", "com.acme.New:2: the body operator Helper is not in opset 1 of com.acme"),
    ],
)
def test_refuses_unknown_operators_in_expressions(missing: str, reason: str, tmp_path: Path) -> None:
    operators = {name: text for name, text in OPERATORS.items() if name != missing}
    with pytest.raises(DefinitionError) as caught:
        compile_routes(_registry(tmp_path, **operators))
    assert caught.value.reason == reason


def test_compiled_compatible_steps_equal_those_built_from_the_definitions() -> None:
    for operator in default_registry().operators():
        built = {
            step_key(each.source.since_version, each.opset): tuple(sorted(each.affected_element_types))
            for each in build_steps(operator, adapter_table())
            if each.affected_element_types is not None
        }
        assert operator.compatible_steps == built, operator.name
