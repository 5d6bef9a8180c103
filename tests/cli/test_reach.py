"""`opshift reach`: the opsets that a model can be converted to, and the nodes that limit them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import Result

from opshift import default_registry

Run = Callable[..., Result]
NEWEST = default_registry().newest_opset()


@pytest.fixture
def limited_model(folder: Path) -> Path:
    """Write `bound.onnx` of opset 13; Sin does not exist before opset 7."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["r"], "relu"), helper.make_node("Sin", ["r"], ["y"], "sin")],
        "g",
        [value("x", TensorProto.FLOAT, [4])],
        [value("y", TensorProto.FLOAT, None)],
    )
    path = folder / "bound.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), path)
    return path


def test_lists_limits_by_opset_and_cause(run: Run, limited_model: Path) -> None:
    result = run("reach", str(limited_model))
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert (
        f"lowest 7 highest {NEWEST} Refused at opset 6 operator.no-equivalent: no operator of opset 6" in text
    )
    assert text.endswith("7 or later Sin:7 graph, node 'sin'")


def test_summarizes_limits_of_other_opsets(run: Run, folder: Path) -> None:
    value = helper.make_tensor_value_info
    names = ("Sin", "Erf")
    nodes = [helper.make_node(name, ["x"], [name]) for name in names]
    outputs = [value(name, TensorProto.FLOAT, None) for name in names]
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [4])], outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), folder / "two.onnx")
    lines = [line.split() for line in run("reach", "two.onnx").stdout.splitlines()]
    limits = json.loads(run("reach", "two.onnx", "--format", "json").stdout)["limits"]
    first, *others = limits
    assert lines.index(["Refused", "at", "opset", str(first["opset"])]) < lines.index(["Further", "limits"])
    assert others
    for each in others:
        for group in each["groups"]:
            assert [str(each["opset"]), group["code"], str(len(group["places"]))] in lines


def test_json_has_lowest_and_highest_opset(run: Run, limited_model: Path) -> None:
    report = json.loads(run("reach", str(limited_model), "--format", "json").stdout)
    assert (report["domain"], report["opset"], report["lowest"], report["highest"]) == (
        "ai.onnx",
        13,
        7,
        NEWEST,
    )
    assert [node["operator"] for node in report["nodes"]] == ["ai.onnx.Sin:7"]
    (limit,) = report["limits"]
    assert (limit["opset"], limit["groups"][0]["places"]) == (6, ["graph, node 'sin'"])


def test_refuses_domain_without_import(run: Run, limited_model: Path) -> None:
    result = run("reach", str(limited_model), "--domain", "ai.onnx.ml")
    assert result.exit_code == 1
    assert "does not import ai.onnx.ml" in result.stderr


def test_prints_no_bounds_of_a_model_that_reaches_no_opset(run: Run, limited_model: Path) -> None:
    model = onnx.load(limited_model)
    model.graph.node[0].op_type = "Foo"
    onnx.save(model, "unknown.onnx")
    lines = [line.split() for line in run("reach", "bound.onnx", "unknown.onnx").stdout.splitlines()]
    assert ["limited", "13", "7", str(NEWEST), "bound.onnx"] in lines
    assert ["limited", "13", "-", "-", "unknown.onnx"] in lines
