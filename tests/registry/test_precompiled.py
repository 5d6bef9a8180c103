"""`registry/compiled.json` equals the files it is compiled from and is used only while they are unchanged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from opshift.opsets import OPSETS
from opshift.registry import precompiled as module
from opshift.registry.definition_files import CONSUMERS, RELEASES, TYPES
from opshift.registry.ir_versions import IR_VERSIONS, read_ir_versions
from opshift.registry.loader import load_operator
from opshift.registry.precompiled import load_precompiled
from opshift.registry.registry import default_registry
from opshift.registry.releases import Releases

DEFINITIONS = [
    default_registry().file_of(name, domain)
    for domain in default_registry().domains()
    for name in default_registry().names(domain)
]
FROM_FILE = "content of the file"


def read_file() -> str:
    return FROM_FILE


def fail() -> NoReturn:
    raise AssertionError("a compiled copy is missing")


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_a_compiled_operator_equals_its_file(path: Path) -> None:
    found: Any = load_precompiled(path, [OPSETS / TYPES], fail)
    loaded = load_operator(path, default_registry().types)
    assert found == loaded
    assert repr(found) == repr(loaded)


FILES: dict[str, tuple[Path, list[Path], Callable[[], Any]]] = {
    "releases": (OPSETS / RELEASES, [OPSETS / CONSUMERS], lambda: Releases.from_folder(OPSETS)),
    "IR versions": (IR_VERSIONS, [], lambda: read_ir_versions(IR_VERSIONS)),
}


@pytest.mark.parametrize(("path", "sources", "reader"), FILES.values(), ids=FILES)
def test_other_compiled_data_equal_their_files(
    path: Path, sources: list[Path], reader: Callable[[], Any]
) -> None:
    found: Any = load_precompiled(path, sources, fail)
    assert found == reader()
    assert repr(found) == repr(reader())


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of Relu and the type sets in place of the project's own folder."""
    (tmp_path / "ai.onnx").mkdir()
    for name in ("ai.onnx/Relu.yaml", TYPES):
        (tmp_path / name).write_bytes((OPSETS / name).read_bytes())
    monkeypatch.setattr(module, "OPSETS", tmp_path)
    return tmp_path


def test_does_not_read_an_unchanged_file(tree: Path) -> None:
    found: Any = load_precompiled(tree / "ai.onnx" / "Relu.yaml", [tree / TYPES], fail)
    assert found == default_registry().operator("Relu")


@pytest.mark.parametrize("name", ["ai.onnx/Relu.yaml", TYPES])
def test_reads_a_changed_file(tree: Path, name: str) -> None:
    (tree / name).write_bytes((tree / name).read_bytes() + b"\n")
    assert load_precompiled(tree / "ai.onnx" / "Relu.yaml", [tree / TYPES], read_file) == FROM_FILE


def test_reads_a_file_that_is_not_compiled(tree: Path) -> None:
    (tree / "ai.onnx" / "Blur.yaml").write_text("domain: ai.onnx\n")
    assert load_precompiled(tree / "ai.onnx" / "Blur.yaml", [tree / TYPES], read_file) == FROM_FILE


def test_reads_a_file_of_a_different_folder(tmp_path: Path) -> None:
    path = tmp_path / "ai.onnx" / "Relu.yaml"
    path.parent.mkdir()
    path.write_bytes((OPSETS / "ai.onnx" / "Relu.yaml").read_bytes())
    assert load_precompiled(path, [OPSETS / TYPES], read_file) == FROM_FILE


def test_reads_files_without_a_compiled_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_text", lambda: "")
    assert load_precompiled(OPSETS / "ai.onnx" / "Relu.yaml", [OPSETS / TYPES], read_file) == FROM_FILE
