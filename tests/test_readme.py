"""The Python blocks of README.md and of pages about details run, with the names that the text introduces."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from readme_renderer import markdown
from typer.testing import CliRunner

import opshift
from opshift.cli.main import COMMANDS, app
from opshift.registry.documents.node_builders import node_builders

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
COMMAND_LINE = (ROOT / "docs/command-line.md").read_text("utf-8")
PAGES = (
    "README.md", "docs/command-line.md", "docs/conversions.md", "docs/getting-started.md",
    "docs/guarantees.md", "docs/python.md", "docs/registry.md",
)  # fmt: skip


def _model() -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Softmax", ["x"], ["y"], axis=1)], "example", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _model()
    shutil.copytree(ROOT / "examples" / "acme" / "acme_operators", tmp_path / "acme" / "opsets")
    onnx.save(model, tmp_path / "old.onnx")
    (tmp_path / "ops17.py").write_text(node_builders(opshift.default_registry(), opset=17), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {
        "opshift": opshift,
        "model": model,
        "original": model,
        "converted": opshift.convert_version(model, 17),
        "node": model.graph.node[0],
        "one": model,
        "other": opshift.convert_version(model, 13),
        "old": model,
        "new": model,
    }
    for block in re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.M | re.S):
        exec(compile(block, page, "exec"), names)  # the project's own documentation
    if "newer" in names:
        assert names["newer"].opset_import[0].version == 17
    if "again" in names:
        assert names["again"] == opshift.convert_version(names["model"], 20)


FIRST_TABLE = re.search(r"^## You have this.*?(?=^## )", README, re.M | re.S)
COMMANDS_BY_SYMPTOM = re.findall(r"\| `opshift ([^`]+)` \|$", FIRST_TABLE[0] if FIRST_TABLE else "", re.M)


@pytest.mark.every_case
@pytest.mark.parametrize("command", COMMANDS_BY_SYMPTOM)
def test_commands_by_symptom_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    for name in ("model.onnx", "models/one.onnx"):
        onnx.save(opshift.convert_version(_model(), 13), tmp_path / name)
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0, result.output
    written = [each for each in (tmp_path / "fixed.onnx", tmp_path / "converted/one.onnx") if each.exists()]
    assert len(written) == ("fixed.onnx" in command or "--out" in command)
    for path in written:
        onnx.checker.check_model(onnx.load(path), full_check=True)


def test_lists_every_command() -> None:
    assert [
        each.name for each in COMMANDS if not re.search(rf"^\| `opshift {each.name}\b", COMMAND_LINE, re.M)
    ] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_exist(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text("utf-8"))
    assert [each for each in links if not (ROOT / page).parent.joinpath(each).exists()] == []


def test_links_to_headings_exist() -> None:
    for target, heading in re.findall(r"\]\(([^)#]*)#([^)]+)\)", README):
        text = (ROOT / (target or "README.md")).read_text("utf-8")
        assert heading in [each.lower().replace(" ", "-") for each in re.findall(r"^#+ (.*)$", text, re.M)]


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= 200


def test_package_index_renders_the_readme() -> None:
    """Warnings of the renderer are those of `twine check`."""
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Repository"]
    text = runpy.run_path(str(ROOT / "hatch_build.py"))["package_readme"](README, repository)
    rendered = markdown.render(text)
    assert rendered
    assert "mermaid" not in rendered
    links = re.findall(r'(?:href|src)="([^"#]+)"', rendered)
    assert [each for each in links if not each.startswith(("https://", "http://"))] == []
