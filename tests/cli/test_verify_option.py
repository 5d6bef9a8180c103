"""`--verify` of commands other than `convert`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from typer.testing import Result

from opshift.analysis.fit import fit as fit_module

Run = Callable[..., Result]


@pytest.fixture
def mislabeled_model(old_model: Path) -> Path:
    """Write `old.onnx` with an IR version that onnxruntime accepts, but which does not fit."""
    model = onnx.load(old_model)
    model.ir_version = 3
    onnx.save(model, old_model)
    return old_model


def test_doctor_compares_the_fixed_model(run: Run, mislabeled_model: Path) -> None:
    result = run("doctor", "old.onnx", "new.onnx", "--fix", "--verify", "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["verification"]["equal"] is True
    text = run("doctor", "old.onnx", "new.onnx", "--fix", "--verify", "-f").stdout
    assert "Comparison of outputs" in text


def test_doctor_writes_nothing_if_the_original_does_not_run(run: Run, old_model: Path) -> None:
    model = onnx.load(old_model)
    model.opset_import[0].version = 13
    onnx.save(model, old_model)
    result = run("doctor", "old.onnx", "new.onnx", "--fix", "--verify")
    assert result.exit_code == 1
    assert "does not fit the nodes: use 10" in " ".join(result.stdout.split())
    assert "both models never ran on the same inputs" in result.stderr
    assert os.listdir() == ["old.onnx"]


def test_fit_compares_the_fitted_model(run: Run, old_model: Path) -> None:
    result = run("fit", "old.onnx", "new.onnx", "-r", "onnxruntime-1.31.1", "--verify", "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["verification"]["equal"] is True
    text = run("fit", "old.onnx", "new.onnx", "-r", "onnxruntime-1.31.1", "--verify", "-f").stdout
    assert "Comparison of outputs" in text


def test_fit_writes_nothing_if_outputs_differ(
    run: Run, old_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = fit_module.fit_message

    def wrong(*arguments: object) -> object:
        result, report = right(*arguments)  # type: ignore[arg-type]
        result.graph.node[-1].output[0] = "wrong"
        result.graph.node.add(op_type="Neg", input=["wrong"], output=["y"])
        return result, report

    monkeypatch.setattr(fit_module, "fit_message", wrong)
    result = run("fit", "old.onnx", "new.onnx", "-r", "onnxruntime-1.31.1", "--verify")
    assert result.exit_code == 1
    assert "differs" in result.stderr
    assert os.listdir() == ["old.onnx"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["doctor", "old.onnx", "--verify"], "--verify requires --fix", id="doctor without fix"),
        pytest.param(
            ["doctor", "old.onnx", "a", "--fix", "--tolerance", "1"], "require --verify", id="doctor"
        ),
        pytest.param(
            ["fit", "old.onnx", "a", "-r", "tract-0.23.9", "--tolerance", "1"], "require --verify", id="fit"
        ),
    ],
)
def test_refuses_options_without_the_one_that_they_need(
    run: Run, old_model: Path, arguments: list[str], message: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
