"""`opshift reach`: how far a model can be moved, and which nodes bind it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def bound_model(folder: Path) -> Path:
    """`bound.onnx`, of opset 13: nothing says what Sin did before 7."""
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


def test_the_binding_node_is_marked(run: Run, bound_model: Path) -> None:
    result = run("reach", str(bound_model))
    assert result.exit_code == 0
    line = next(line for line in result.stdout.splitlines() if "sin" in line)
    assert line.split()[:4] == ["7", "28", "ai.onnx.Sin:7", "*"]


def test_json_has_lowest_and_highest(run: Run, bound_model: Path) -> None:
    found = json.loads(run("reach", str(bound_model), "--format", "json").stdout)
    assert (found["domain"], found["opset"], found["lowest"], found["highest"]) == ("ai.onnx", 13, 7, 28)
    assert [node["operator"] for node in found["nodes"]] == ["ai.onnx.Sin:7"]


def test_a_domain_that_is_not_imported_is_an_error(run: Run, bound_model: Path) -> None:
    result = run("reach", str(bound_model), "--domain", "ai.onnx.ml")
    assert result.exit_code == 1
    assert "does not import ai.onnx.ml" in result.stderr
