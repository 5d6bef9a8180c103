"""`opshift convert --reversible`: record replaced nodes and restore them later."""

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
def newer_model(folder: Path) -> Path:
    """Write `newer.onnx` of opset 20 with Gelu, which opset 13 does not have."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Gelu", ["x"], ["y"], "gelu")], "g", values[:1], values[1:])
    path = folder / "newer.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    return path


def keys(path: Path) -> list[str]:
    return [each.key for each in onnx.load(path).metadata_props]


def test_downgrade_and_upgrade_restore_model(run: Run, newer_model: Path, folder: Path) -> None:
    assert run("convert", str(newer_model), "down.onnx", "--target", "13", "--reversible").exit_code == 0
    assert keys(folder / "down.onnx") == [KEY]
    assert run("convert", "down.onnx", "up.onnx", "--target", "20").exit_code == 0
    assert onnx.load(folder / "up.onnx") == onnx.load(newer_model)


def test_records_nothing_without_option(run: Run, newer_model: Path, folder: Path) -> None:
    assert run("convert", str(newer_model), "down.onnx", "--target", "13").exit_code == 0
    assert keys(folder / "down.onnx") == []


def test_plan_lists_restored_nodes(run: Run, newer_model: Path) -> None:
    run("convert", str(newer_model), "--in-place", "--target", "13", "--reversible")
    result = run("plan", str(newer_model), "--target", "20")
    assert "5 -> 1  Div:13, Erf:13, Add:13, 2 Mul:13  Gelu:20, restored" in result.stdout
    explained = run("plan", str(newer_model), "--target", "20", "--explain")
    assert "restored to its state before an earlier conversion" in explained.stdout
    data = json.loads(run("plan", str(newer_model), "--target", "20", "--format", "json").stdout)
    assert [each["becomes"] for each in data["changed"]] == [["ai.onnx.Gelu:20"]]


def test_records_changes_of_several_models(run: Run, newer_model: Path, folder: Path) -> None:
    result = run("convert", str(newer_model), "--out", "lowered", "--target", "13", "--reversible")
    assert result.exit_code == 0
    assert keys(folder / "lowered" / "newer.onnx") == [KEY]


def test_reports_damaged_record(run: Run, newer_model: Path, folder: Path) -> None:
    model = onnx.load(newer_model)
    model.metadata_props.add(key=KEY, value="?")
    onnx.save(model, newer_model)
    result = run("convert", str(newer_model), "down.onnx", "--target", "13")
    assert result.exit_code == 1
    assert KEY in result.stderr
    assert not (folder / "down.onnx").exists()
