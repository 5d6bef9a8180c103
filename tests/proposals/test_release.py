"""Opsets are marked as not released until `opshift opset release` closes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from support.proposals import replace_text
from typer.testing import CliRunner, Result

from opshift.checker.check import check
from opshift.cli.main import app
from opshift.model.errors import UsageError
from opshift.proposals.accept import accept, release, releases_with_opset
from opshift.proposals.content.findings import NotAcceptable
from opshift.proposals.content.staged_registry import registry_of_tree
from opshift.registry.fingerprints import load_lock, lock_differences

Make = Callable[..., Path]
SENTENCE = "opset 29 of ai.onnx is not released: its operators may still change"


def _run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(app, arguments, catch_exceptions=False)


def _model(opset: int) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "test", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def test_release_publishes_accepted_versions(make: Make, tree: Path) -> None:
    accept(make("function"), tree)
    accept(make("update"), tree)
    released = release(tree, date(2026, 12, 24))
    registry = registry_of_tree(tree)
    assert (released.name, list(map(str, released.versions))) == (
        "1.24",
        ["ai.onnx.Elu:29", "ai.onnx.Squareplus:29"],
    )
    entry = registry.releases.onnx["1.24"]
    assert (entry.released, entry.date, entry.opsets["ai.onnx"]) == (True, "2026-12", 29)
    assert list(lock_differences(registry.operators(), load_lock(tree / "fingerprints.yaml"))) == []
    with pytest.raises(NotAcceptable) as refused:
        accept(make("deprecation"), tree)
    assert "opset.released" in {each.rule for each in refused.value.findings}


def test_next_proposal_opens_next_opset(make: Make, tree: Path) -> None:
    accept(make("function"), tree)
    release(tree)
    edits = (replace_text(name, "29", "30") for name in ("operator.yaml", "adapters.py"))
    assert accept(make("update", *edits), tree).opset == 30
    releases = registry_of_tree(tree).releases.onnx
    assert [releases[name].released for name in ("1.24", "1.25")] == [True, False]


@pytest.mark.parametrize("edit", ["minimum: 0", "tensor(float)"], ids=["attribute", "type"])
def test_refuses_definition_that_differs_from_fingerprint(edit: str, make: Make, tree: Path) -> None:
    accept(make("function"), tree)
    path = tree / "ai.onnx" / "Squareplus.yaml"
    path.write_text(path.read_text().replace(edit, {"minimum: 0": "minimum: 1"}.get(edit, "tensor(double)")))
    before = {each: each.read_bytes() for each in tree.glob("*.yaml")}
    with pytest.raises(UsageError, match="Squareplus: entry '29' differs") as refused:
        release(tree)
    assert refused.value.remedy
    assert {each: each.read_bytes() for each in tree.glob("*.yaml")} == before


def test_refuses_tree_without_unreleased_opset(tree: Path, tmp_path: Path) -> None:
    for folder in (tree, tmp_path):
        with pytest.raises(UsageError, match="no unreleased opset") as refused:
            release(folder)
        assert refused.value.place.file == str(folder / "releases.yaml")


def test_refuses_release_on_several_lines(make: Make, tree: Path) -> None:
    accept(make("function"), tree)
    path = tree / "releases.yaml"
    path.write_text(path.read_text().replace(", released: false}", ",\n    released: false\n  }"))
    with pytest.raises(UsageError, match="the release has no `released: false` on one line"):
        release(tree)


@pytest.mark.parametrize("is_released", [True, False])
def test_refuses_to_add_opset_to_release_on_several_lines(is_released: bool, make: Make, tree: Path) -> None:
    if not is_released:
        accept(make("function"), tree)
    path = tree / "releases.yaml"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    position = next(i for i, line in reversed([*enumerate(lines)]) if "ai.onnx.preview.training:" in line)
    lines[position] = lines[position].replace(": {ir_version", ":\n    {ir_version")
    path.write_text("".join(lines), "utf-8")
    with pytest.raises(UsageError, match=r"cannot add opset 30 of ai\.onnx to the releases") as refused:
        releases_with_opset(path, registry_of_tree(tree), "ai.onnx", 30)
    assert refused.value.remedy == "write the release on one line, in braces"


def test_commands_mark_unreleased_opset(make: Make, tree: Path, tmp_path: Path) -> None:
    accept(make("function"), tree)
    source, target = tmp_path / "model.onnx", tmp_path / "new.onnx"
    onnx.save(_model(22), source)
    options = ("--opsets", str(tree))
    for command in (("plan", str(source)), ("convert", str(source), str(target))):
        assert f"warning: {SENTENCE}" in _run(*command, "--target", "29", *options).stdout
    assert "not released" not in _run("plan", str(source), "--target", "28", *options).stdout
    rows = [line for line in _run("targets", *options).stdout.splitlines() if "not released" in line]
    assert [row.split()[0] for row in rows] == ["onnx-1.24"]
    assert SENTENCE in _run("check", str(target), *options).stdout
    data = json.loads(_run("plan", str(source), "--target", "29", "--format", "json", *options).stdout)
    assert data["unreleased"] == [SENTENCE]


def test_command_releases_opset(make: Make, tree: Path, tmp_path: Path) -> None:
    accept(make("function"), tree)
    stdout = _run("opset", "release", "--opsets", str(tree)).stdout
    assert stdout.startswith("released 1.24: 1 new version\nai.onnx.Squareplus:29\n")
    assert "not released" not in _run("targets", "--opsets", str(tree)).stdout
    rules = {each.rule for each in check(_model(29), registry=registry_of_tree(tree))}
    assert "opset.unreleased" not in rules
