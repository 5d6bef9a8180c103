"""`opshift doctor`: diagnosis and correction of declared versions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from typer.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def mislabeled_model(old_model: Path) -> Path:
    """Write `old.onnx` with opset 13 despite attributes of Clip, and IR version 3 despite its weight."""
    model = onnx.load(old_model)
    model.opset_import[0].version = 13
    model.ir_version = 3
    onnx.save(model, old_model)
    return old_model


def versions_of(path: str) -> tuple[int, int]:
    model = onnx.load(path)
    return model.opset_import[0].version, model.ir_version


def test_accepts_fitting_model(run: Run, old_model: Path) -> None:
    result = run("doctor", "old.onnx")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "ai.onnx 10, fits; all nodes are valid at 1 to 10" in lines
    assert "IR version 6, fits; the model needs at least 4" in lines
    assert "2 Clip 1 to 10" in lines


def test_reports_wrong_versions(run: Run, mislabeled_model: Path) -> None:
    result = run("doctor", "old.onnx")
    assert result.exit_code == 1
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "ai.onnx 13, does not fit the nodes: use 10" in lines
    assert "IR version 3, does not fit: use 5" in lines
    assert "Clip graph, node 'clip1' ai.onnx.Clip:13 has no attribute 'max'" in lines
    assert os.listdir() == ["old.onnx"]


def test_prints_findings_as_json(run: Run, mislabeled_model: Path) -> None:
    data = json.loads(run("doctor", "old.onnx", "--format", "json").stdout)
    assert data["fits"] is False
    assert data["stamps"] == [
        {
            "place": "model",
            "domain": "ai.onnx",
            "opset": 13,
            "opsets": [[1, 10]],
            "fitting": 10,
            "replaced": [],
            "repeated": [],
            "converted": False,
        }
    ]
    assert data["ir_version"] == {"stated": 3, "needed": 4, "fitting": 5}
    assert {each["operator"] for each in data["nodes"]} == {"ai.onnx.Conv", "ai.onnx.Clip"}


def test_prints_repairs(run: Run, old_model: Path) -> None:
    model = onnx.load(old_model)
    model.graph.node.reverse()
    onnx.save(model, old_model)
    result = run("doctor", "old.onnx")
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert "warning: a conversion repairs the model first: graph: the nodes were not in topological" in text
    (repair,) = json.loads(run("doctor", "old.onnx", "--format", "json").stdout)["repairs"]
    assert "topological order" in repair


def test_fix_writes_fitting_versions(run: Run, mislabeled_model: Path) -> None:
    before = mislabeled_model.read_bytes()
    result = run("doctor", "old.onnx", "new.onnx", "--fix")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == "wrote new.onnx with ai.onnx 10, IR version 5"
    assert versions_of("new.onnx") == (10, 5)
    assert mislabeled_model.read_bytes() == before
    assert run("doctor", "new.onnx").exit_code == 0


def test_fix_in_place(run: Run, mislabeled_model: Path) -> None:
    assert run("doctor", "old.onnx", "--fix", "--in-place", "--quiet").output == ""
    assert versions_of("old.onnx") == (10, 5)
    assert os.listdir() == ["old.onnx"]


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        pytest.param(["old.onnx"], None, id="no fix"),
        pytest.param(["old.onnx", "new.onnx", "--fix"], "new.onnx", id="fix"),
        pytest.param(["old.onnx", "--fix", "--in-place"], "old.onnx", id="fix in place"),
    ],
)
def test_json_names_the_written_file(
    run: Run, mislabeled_model: Path, arguments: list[str], written: str | None
) -> None:
    assert json.loads(run("doctor", *arguments, "--format", "json").stdout)["output"] == written


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["old.onnx", "new.onnx"], "new.onnx: file does not exist", id="output without --fix"),
        pytest.param(["old.onnx", "--in-place"], "--in-place requires --fix", id="in place without --fix"),
        pytest.param(
            ["old.onnx", "--external", "keep"], "--external requires --fix", id="external without --fix"
        ),
        pytest.param(
            ["old.onnx", "a.onnx", "b.onnx", "--fix"], "--fix corrects one model", id="fix of several models"
        ),
        pytest.param(["old.onnx", "a.onnx", "--fix", "-t", "17"], "without --target", id="fix with a target"),
        *(
            pytest.param(
                ["old.onnx", "a.onnx", "--fix", option, value],
                f"{option} has no effect with --fix",
                id=f"fix with {option}",
            )
            for option, value in (("--jobs", "2"), ("--ledger", "l"), ("--sarif", "x.sarif"))
        ),
        pytest.param(["old.onnx", "--fix"], "OUT is not given", id="no output"),
        pytest.param(["old.onnx", "old.onnx", "--fix", "-f"], "is the input file", id="input as output"),
        pytest.param(["none.onnx"], "file does not exist", id="missing file"),
    ],
)
def test_refuses_wrong_usage(run: Run, mislabeled_model: Path, arguments: list[str], message: str) -> None:
    result = run("doctor", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert os.listdir() == ["old.onnx"]


def test_fix_writes_nothing_if_no_opset_fits(run: Run, old_model: Path) -> None:
    model = onnx.load(old_model)
    model.graph.node[2].CopyFrom(onnx.helper.make_node("Gelu", ["b"], ["y"]))
    onnx.save(model, old_model)
    result = run("doctor", "old.onnx", "new.onnx", "--fix")
    assert result.exit_code == 1
    assert "does not fit the nodes: no opset is valid for all nodes" in result.stdout
    assert "no opset of ai.onnx is valid for all nodes" in result.stderr
    data = json.loads(run("doctor", "old.onnx", "new.onnx", "--fix", "--format", "json").stdout)
    assert data["reason"] == "no opset of ai.onnx is valid for all nodes"
    assert "output" not in data
    assert os.listdir() == ["old.onnx"]


@pytest.fixture
def overridable_weights(old_model: Path) -> Path:
    """Make the weight of `old.onnx` a graph input, too."""
    model = onnx.load(old_model)
    weight = model.graph.initializer[0]
    model.graph.input.append(
        onnx.helper.make_tensor_value_info(weight.name, weight.data_type, list(weight.dims))
    )
    onnx.save(model, old_model)
    return old_model


def test_mentions_and_frees_initializers_that_are_inputs(run: Run, overridable_weights: Path) -> None:
    result = run("doctor", "old.onnx")
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert "note: 1 initializer is also a graph input" in text
    data = json.loads(run("doctor", "old.onnx", "--format", "json").stdout)
    name = onnx.load(overridable_weights).graph.initializer[0].name
    assert data["overridable"] == [name]
    assert "declared.initializer-inputs" in run("doctor", "old.onnx", "--format", "sarif").stdout
    assert run("doctor", "old.onnx", "kept.onnx", "--fix", "--keep-initializer-inputs").exit_code == 0
    assert onnx.load("kept.onnx") == onnx.load(overridable_weights)
    assert run("doctor", "old.onnx", "new.onnx", "--fix").exit_code == 0
    assert name not in [each.name for each in onnx.load("new.onnx").graph.input]
    assert "note:" not in run("doctor", "new.onnx").stdout


def test_option_for_initializer_inputs_requires_fix(run: Run, old_model: Path) -> None:
    result = run("doctor", "old.onnx", "--keep-initializer-inputs")
    assert result.exit_code == 2
    assert "--keep-initializer-inputs requires --fix" in result.stderr
