"""`opshift inspect`: contents of a model, and nodes that cannot be resolved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
from onnx import TensorProto, helper
from typer.testing import Result

Run = Callable[..., Result]


def value(name: str, element_type: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, ["N", 2, None])


def save_nested() -> None:
    """Write a model with a function, subgraphs, an operator of a foreign domain and an unknown operator."""
    branch = helper.make_graph([helper.make_node("Relu", ["x"], ["r"])], "b", [], [value("r")])
    nodes = [
        helper.make_node("If", ["c"], ["i"], then_branch=branch, else_branch=branch),
        helper.make_node("Twice", ["i"], ["t"], domain="local"),
        helper.make_node("Fast", ["t"], ["f"], domain="com.acme"),
        helper.make_node("Relou", ["f"], ["y"]),
    ]
    twice = helper.make_function(
        "local",
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 14)],
    )
    graph = helper.make_graph(nodes, "g", [value("x"), value("c", TensorProto.BOOL)], [value("y")])
    imports = [helper.make_opsetid(*each) for each in (("", 17), ("local", 1), ("com.acme", 1))]
    model = helper.make_model(graph, opset_imports=imports, functions=[twice], producer_name="tester")
    model.ir_version = 8
    onnx.save(model, "nested.onnx")


def test_counts_nodes_and_operators(run: Run, folder: Path) -> None:
    save_nested()
    result = run("inspect", "nested.onnx", "--format", "json")
    data = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (1, "")
    assert (data["ir_version"], data["producer"]) == (8, "tester")
    assert data["opsets"] == {"ai.onnx": 17, "local": 1, "com.acme": 1}
    assert data["nodes"] == {"graph": 4, "subgraphs": 2, "functions": 1, "training": 0}
    assert data["functions"] == ["local.Twice"]
    assert data["inputs"][0] == {"name": "x", "type": "tensor(float)", "shape": "[N, 2, ?]"}
    assert [(use["operator"], use["count"], use["kind"]) for use in data["operators"]] == [
        ("ai.onnx.Relu:14", 2, "operator"),
        ("ai.onnx.Add:14", 1, "operator"),
        ("ai.onnx.If:16", 1, "operator"),
        ("com.acme.Fast", 1, "foreign"),
        ("local.Twice", 1, "function"),
        ("ai.onnx.Relou", 1, "unresolved"),
    ]


def test_prints_text(run: Run, folder: Path) -> None:
    save_nested()
    lines = [" ".join(line.split()) for line in run("inspect", "nested.onnx").stdout.splitlines()]
    assert "nodes 7: 4 in the graph, 2 in subgraphs, 1 in functions" in lines
    assert "ai.onnx 17 onnx-1.12" in lines
    assert "c tensor(bool) [N, 2, ?]" in lines
    assert "2 ai.onnx.Relu:14" in lines
    assert "1 com.acme.Fast the registry has no definitions for its domain" in lines
    assert "1 local.Twice local function of the model" in lines
    assert any(
        line.startswith("1 ai.onnx.Relou unresolved: ai.onnx has no operator 'Relou'") for line in lines
    )
    assert lines[-1] == "1 node unresolved"


def test_accepts_valid_model(run: Run, old_model: Path) -> None:
    result = run("inspect", "old.onnx")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "ai.onnx.Clip:6" in result.stdout
    assert "unresolved" not in result.stdout


def test_inputs_exclude_initializers(run: Run, old_model: Path) -> None:
    model = onnx.load(old_model)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3, 3, 1, 1]))
    onnx.save(model, old_model)
    data = json.loads(run("inspect", "old.onnx", "--format", "json").stdout)
    assert [each["name"] for each in data["inputs"]] == ["x"]
    assert data["initializers"] == 1


def test_resolves_additional_definitions(run: Run, folder: Path, acme: Path) -> None:
    node = helper.make_node("FastConv", ["x"], ["y"], domain="com.acme")
    graph = helper.make_graph([node], "g", [value("x")], [value("y")])
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("com.acme", 4)]
    onnx.save(helper.make_model(graph, opset_imports=imports), "acme.onnx")
    assert "com.acme.FastConv:3" in run("inspect", "acme.onnx", "--opsets", "acme").stdout
