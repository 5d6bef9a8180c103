"""`opshift convert --reversible`: what is replaced is recorded, and comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import Result

Run = Callable[..., Result]
KEY = "opshift.reversible"


@pytest.fixture
def newer(folder: Path) -> Path:
    """`newer.onnx`, of opset 20, with a Gelu that opset 13 lacks."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Gelu", ["x"], ["y"], "gelu")], "g", values[:1], values[1:])
    path = folder / "newer.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    return path


def keys(path: Path) -> list[str]:
    return [each.key for each in onnx.load(path).metadata_props]


def test_there_and_back_is_the_same_file(run: Run, newer: Path, folder: Path) -> None:
    assert run("convert", str(newer), "down.onnx", "--target", "13", "--reversible").exit_code == 0
    assert keys(folder / "down.onnx") == [KEY]
    assert run("convert", "down.onnx", "up.onnx", "--target", "20").exit_code == 0
    assert onnx.load(folder / "up.onnx") == onnx.load(newer)


def test_nothing_is_recorded_without_it(run: Run, newer: Path, folder: Path) -> None:
    assert run("convert", str(newer), "down.onnx", "--target", "13").exit_code == 0
    assert keys(folder / "down.onnx") == []


def test_a_plan_tells_what_is_put_back(run: Run, newer: Path) -> None:
    run("convert", str(newer), "--in-place", "--target", "13", "--reversible")
    told = run("plan", str(newer), "--target", "20")
    assert "restored to its state before an earlier conversion" in told.stdout
    data = json.loads(run("plan", str(newer), "--target", "20", "--format", "json").stdout)
    assert [each["becomes"] for each in data["changed"]] == [["ai.onnx.Gelu:20"]]


def test_several_models_are_recorded_each(run: Run, newer: Path, folder: Path) -> None:
    done = run("convert", str(newer), "--out", "lowered", "--target", "13", "--reversible")
    assert done.exit_code == 0
    assert keys(folder / "lowered" / "newer.onnx") == [KEY]


def test_a_damaged_record_is_told(run: Run, newer: Path, folder: Path) -> None:
    model = onnx.load(newer)
    model.metadata_props.add(key=KEY, value="?")
    onnx.save(model, newer)
    told = run("convert", str(newer), "down.onnx", "--target", "13")
    assert told.exit_code == 1
    assert KEY in told.stderr
    assert not (folder / "down.onnx").exists()
