"""`--without` of convert and plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import pytest
from typer.testing import Result

Run = Callable[..., Result]

MODEL = """
    <ir_version: 9, opset_import: ["": 20, "com.acme": 1]>
    main (float[N] x) => (float[N] y) { h = Gelu (x) y = Sin (h) }
"""


@pytest.fixture
def model(folder: Path) -> str:
    onnx.save(onnx.parser.parse_model(MODEL), folder / "model.onnx")
    return "model.onnx"


def test_convert_verifies_the_result_without_an_operator(run: Run, model: str) -> None:
    done = run("convert", model, "out.onnx", "--without", "Gelu", "--without", "com.acme", "--verify")
    assert done.exit_code == 0, done.stderr
    assert "note: the import of com.acme is removed" in " ".join(done.stdout.split())
    assert ["com.acme", "1,", "removed"] in [line.split() for line in done.stdout.splitlines()]
    found = onnx.load("out.onnx")
    assert [(each.domain, each.version) for each in found.opset_import] == [("", 20)]
    assert "Gelu" not in {each.op_type for each in found.graph.node}


def test_plan_lists_refused_nodes(run: Run, model: str) -> None:
    found = run("plan", model, "--without", "Gelu", "--without", "ai.onnx.Sin", "--format", "json")
    assert found.exit_code == 1
    (refusal,) = json.loads(found.stdout)["refusals"]
    assert refusal["reason"].startswith("no other operators can replace ai.onnx.Sin:7: ")


def test_converts_a_folder(run: Run, model: str) -> None:
    done = run("convert", model, "--out", "results", "--without", "Gelu")
    assert done.exit_code == 0, done.stderr
    assert "Gelu" not in {each.op_type for each in onnx.load("results/model.onnx").graph.node}


def test_refuses_a_wrong_name(run: Run, model: str) -> None:
    found = run("convert", model, "out.onnx", "--without", "Gellu")
    assert found.exit_code == 2
    assert "did you mean 'Gelu'?" in " ".join(found.stderr.split())
    assert not Path("out.onnx").exists()
