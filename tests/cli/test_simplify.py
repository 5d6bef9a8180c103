"""`opshift simplify`, and `--fold` of convert and plan."""

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
    <ir_version: 9, opset_import: ["": 17]>
    main (float[N, 3] x) => (float[N, 3] y) {
        h = Identity (x)
        n = Neg (h)
        s = Shape (n)
        r = Reshape (n, s)
        y = Softmax (r)
    }
"""


@pytest.fixture
def model(folder: Path) -> str:
    onnx.save(onnx.parser.parse_model(MODEL), folder / "model.onnx")
    return "model.onnx"


def operators(path: str) -> list[str]:
    return [each.op_type for each in onnx.load(path).graph.node]


def test_simplifies_and_verifies(run: Run, model: str) -> None:
    done = run("simplify", model, "out.onnx", "--verify", "--check")
    assert done.exit_code == 0, done.stderr
    assert "note: folding: 2 of 5 nodes remain" in " ".join(done.stdout.split())
    assert ["nodes", "5", "->", "2:", "2", "kept"] in [line.split() for line in done.stdout.splitlines()]
    assert operators("out.onnx") == ["Neg", "Softmax"]
    assert len(operators(model)) == 5


def test_simplifies_in_place(run: Run, model: str) -> None:
    assert run("simplify", model, "--in-place", "--quiet").exit_code == 0
    assert operators(model) == ["Neg", "Softmax"]


def test_declared_shapes_make_sizes_constant(run: Run, folder: Path) -> None:
    text = MODEL.replace("r = Reshape (n, s)", "z = ConstantOfShape (s) r = Add (n, z)")
    onnx.save(onnx.parser.parse_model(text), folder / "zeros.onnx")
    assert run("simplify", "zeros.onnx", "a.onnx").exit_code == 0
    assert operators("a.onnx") == ["Neg", "Shape", "ConstantOfShape", "Add", "Softmax"]
    assert run("simplify", "zeros.onnx", "b.onnx", "--shape", "x=2,3").exit_code == 0
    assert operators("b.onnx") == ["Neg", "Add", "Softmax"]


def test_writes_to_standard_output(run: Run, model: str) -> None:
    done = run("simplify", model, "-", "--format", "json")
    assert done.exit_code == 2
    assert run("simplify", model, "-", "--quiet").exit_code == 0


def test_convert_and_plan_fold_first(run: Run, model: str) -> None:
    assert run("convert", model, "out.onnx", "--target", "12", "--fold").exit_code == 0
    assert operators("out.onnx") == ["Neg", "Softmax"]
    assert run("convert", model, "--out", "results", "--fold").exit_code == 0
    assert operators("results/model.onnx") == ["Neg", "Softmax"]
    planned = run("plan", model, "--fold", "--target", "12", "--format", "json")
    assert json.loads(planned.stdout)["repairs"] == ["folding: 2 of 5 nodes remain"]


def test_refuses_an_invalid_shape(run: Run, model: str) -> None:
    done = run("simplify", model, "out.onnx", "--shape", "z=1")
    assert done.exit_code == 2
    assert not Path("out.onnx").exists()
