"""`--shape` and `--infer-shapes` of convert, plan, reach and fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import pytest
from typer.testing import Result

from opshift.registry.registry import default_registry

Run = Callable[..., Result]

MODEL = """
    <ir_version: 8, opset_import: ["" : 16]>
    main (float[12] x, float[6, 8] like, int64[B] lengths, float[T, B, 4] z)
        => (float[C, D] y, float[T, B, 4] w)
    <int64[2] rest = {3, 4}> {
        sizes = Shape (like)
        reduced = Sub (sizes, rest)
        h = Reshape (x, reduced)
        y = ReverseSequence (h, lengths)
        w = ReverseSequence (z, lengths)
    }
"""

SHAPES = ("--shape", "z=2,4,?", "--infer-shapes")

REGISTRY = default_registry()
KERNELS = "".join(
    f"  ai.onnx.{name}: [{{versions: [1, 9]}}]\n" for name in REGISTRY.names() if REGISTRY.at(name, 9)
)
DEVICE = f"""
runtime: old
version: "1"
opsets: {{ai.onnx: 9}}
expands_functions: false
evidence: {{kind: documentation, source: tests, date: 2026-11-23}}
operators:
{KERNELS}"""


@pytest.fixture
def model(folder: Path) -> str:
    onnx.save(onnx.parser.parse_model(MODEL), folder / "model.onnx")
    (folder / "old.yaml").write_text(DEVICE, "utf-8")
    return "model.onnx"


def test_plan_names_both_options_and_uses_them(run: Run, model: str) -> None:
    refused = run("plan", model, "--target", "9", "--format", "json")
    assert refused.exit_code == 1
    remedies = {each["remedy"] for each in json.loads(refused.stdout)["refusals"]}
    assert any("--shape z=..." in each and "--infer-shapes" in each for each in remedies)
    found = run("plan", model, "--target", "9", *SHAPES, "--format", "json")
    assert found.exit_code == 0
    assert json.loads(found.stdout)["repairs"] == [
        "input 'lengths' is declared as [4] instead of [B]; the result may require this shape",
        "input 'z' is declared as [2, 4, 4] instead of [T, B, 4]; the result may require this shape",
    ]


def test_convert_verifies_and_writes_declared_shapes(run: Run, model: str) -> None:
    done = run("convert", model, "out.onnx", "--target", "9", *SHAPES, "--verify")
    assert done.exit_code == 0, done.stderr
    assert "'z' is declared as [2, 4, 4]" in " ".join(done.stdout.split())
    values = {value.name: value for value in onnx.load("out.onnx").graph.input}
    assert [dim.dim_value for dim in values["z"].type.tensor_type.shape.dim] == [2, 4, 4]


def test_reach_uses_shapes(run: Run, model: str) -> None:
    before = json.loads(run("reach", model, "--format", "json").stdout)
    after = json.loads(run("reach", model, *SHAPES, "--format", "json").stdout)
    assert before["lowest"] == 10
    assert after["lowest"] < 10


def test_fit_names_both_options_and_uses_them(run: Run, model: str) -> None:
    command = ("fit", model, "out.onnx", "-r", "old.yaml")
    refused = run(*command, "--format", "json")
    assert refused.exit_code == 1
    remedies = {each["remedy"] for each in json.loads(refused.stdout)["missing"]}
    assert any("--shape z=..." in each and "--infer-shapes" in each for each in remedies)
    done = run(*command, *SHAPES, "--verify")
    assert done.exit_code == 0, done.stderr
    assert "Declared shapes input 'lengths' is declared as [4]" in " ".join(done.stdout.split())
    values = {value.name: value for value in onnx.load("out.onnx").graph.input}
    assert [dim.dim_value for dim in values["z"].type.tensor_type.shape.dim] == [2, 4, 4]


@pytest.mark.parametrize("command", ["plan", "convert", "reach", "fit"])
def test_wrong_shape_is_an_error_of_use(command: str, run: Run, model: str) -> None:
    arguments = {
        "plan": ["-t", "9"],
        "convert": ["out.onnx", "-t", "9"],
        "reach": [],
        "fit": ["out.onnx", "-r", "old.yaml"],
    }
    found = run(command, model, *arguments[command], "--shape", "length=4")
    assert found.exit_code == 2
    assert "did you mean 'lengths'?" in " ".join(found.stderr.split())
    assert not Path("out.onnx").exists()
