"""`opshift inspect`: contents of a model, and nodes that cannot be resolved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
from onnx import TensorProto, helper, parser
from typer.testing import Result

Run = Callable[..., Result]


def save_nested() -> None:
    """Write a model with a function, subgraphs, an operator of a foreign domain and an unknown operator."""
    model: onnx.ModelProto = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17, "local": 1, "com.acme": 1], producer_name: "tester">
    nested (float[N, 2, ?] x, bool[N, 2, ?] c) => (float[N, 2, ?] y) {
        i = If (c) <
            else_branch = b () => (float[N, 2, ?] r) { r = Relu (x) },
            then_branch = b () => (float[N, 2, ?] r) { r = Relu (x) }
        >
        t = local.Twice (i)
        f = com.acme.Fast (t)
        y = Relou (f)
    }
    <domain: "local", opset_import: ["": 14]>
    Twice (a) => (b) { b = Add (a, a) }
    """)
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
    assert "2 Relu:14" in lines
    assert "1 com.acme.Fast the registry does not define it" in lines
    assert "1 local.Twice local function of the model" in lines
    assert any(line.startswith("1 Relou unresolved: ai.onnx has no operator 'Relou'") for line in lines)
    assert lines[-1] == "1 node unresolved"


def test_accepts_valid_model(run: Run, old_model: Path) -> None:
    result = run("inspect", "old.onnx")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Clip:6" in result.stdout
    assert "unresolved" not in result.stdout


def test_inputs_exclude_initializers(run: Run, old_model: Path) -> None:
    model = onnx.load(old_model)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3, 3, 1, 1]))
    onnx.save(model, old_model)
    data = json.loads(run("inspect", "old.onnx", "--format", "json").stdout)
    assert [each["name"] for each in data["inputs"]] == ["x"]
    assert data["initializers"] == 1


def test_resolves_additional_definitions(run: Run, folder: Path, acme: Path) -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 13, "com.acme": 4]>
    acme (float[N] x) => (float[N] y) { y = com.acme.FastConv (x) }
    """)
    onnx.save(model, "acme.onnx")
    assert "com.acme.FastConv:3" in run("inspect", "acme.onnx", "--opsets", "acme").stdout


def test_shows_version_author_and_license(run: Run, old_model: Path) -> None:
    model = onnx.load(old_model)
    model.model_version, model.domain = 0x0001000200000159, "com.acme"
    helper.set_model_props(model, {"model_author": "A. Author", "model_license": "MIT"})
    onnx.save(model, old_model)
    lines = [" ".join(line.split()) for line in run("inspect", "old.onnx").stdout.splitlines()]
    assert {"model version 1.2.345", "domain com.acme", "author A. Author", "license MIT"} <= set(lines)
