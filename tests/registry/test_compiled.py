"""`registry/compiled.json`: fresh, equal to what the files say, and no more than a shortcut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from opshift.registry import compiled as module
from opshift.registry.catalogue import default_registry
from opshift.registry.compiled import compiled
from opshift.registry.definition_files import CONSUMERS, OPSETS, RELEASES, TYPES
from opshift.registry.ir_versions import IR_VERSIONS, read_ir_versions
from opshift.registry.loader import load_operator
from opshift.registry.releases import Releases

DEFINITIONS = [
    default_registry().file_of(name, domain)
    for domain in default_registry().domains()
    for name in default_registry().names(domain)
]
READ = "it is read"


def read() -> str:
    return READ


def fail() -> NoReturn:
    raise AssertionError("it is not at hand")


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_an_operator_is_what_its_file_says(path: Path) -> None:
    found: Any = compiled(path, [OPSETS / TYPES], fail)
    said = load_operator(path, default_registry().types)
    assert found == said
    assert repr(found) == repr(said)


FILES: dict[str, tuple[Path, list[Path], Callable[[], Any]]] = {
    "releases": (OPSETS / RELEASES, [OPSETS / CONSUMERS], lambda: Releases.of_tree(OPSETS)),
    "IR versions": (IR_VERSIONS, [], lambda: read_ir_versions(IR_VERSIONS)),
}


@pytest.mark.parametrize(("path", "sources", "reader"), FILES.values(), ids=FILES)
def test_other_facts_are_what_their_files_say(
    path: Path, sources: list[Path], reader: Callable[[], Any]
) -> None:
    found: Any = compiled(path, sources, fail)
    assert found == reader()
    assert repr(found) == repr(reader())


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of Relu and the type sets that counts as the project's own."""
    (tmp_path / "ai.onnx").mkdir()
    for name in ("ai.onnx/Relu.yaml", TYPES):
        (tmp_path / name).write_bytes((OPSETS / name).read_bytes())
    monkeypatch.setattr(module, "OPSETS", tmp_path)
    return tmp_path


def test_the_same_bytes_need_no_reading(tree: Path) -> None:
    found: Any = compiled(tree / "ai.onnx" / "Relu.yaml", [tree / TYPES], fail)
    assert found == default_registry().operator("Relu")


@pytest.mark.parametrize("name", ["ai.onnx/Relu.yaml", TYPES])
def test_a_file_that_changed_is_read(tree: Path, name: str) -> None:
    (tree / name).write_bytes((tree / name).read_bytes() + b"\n")
    assert compiled(tree / "ai.onnx" / "Relu.yaml", [tree / TYPES], read) == READ


def test_a_file_that_came_later_is_read(tree: Path) -> None:
    (tree / "ai.onnx" / "Blur.yaml").write_text("domain: ai.onnx\n")
    assert compiled(tree / "ai.onnx" / "Blur.yaml", [tree / TYPES], read) == READ


def test_a_file_of_another_folder_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ai.onnx" / "Relu.yaml"
    path.parent.mkdir()
    path.write_bytes((OPSETS / "ai.onnx" / "Relu.yaml").read_bytes())
    assert compiled(path, [OPSETS / TYPES], read) == READ


def test_files_are_read_where_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_text", lambda: "")
    assert compiled(OPSETS / "ai.onnx" / "Relu.yaml", [OPSETS / TYPES], read) == READ
