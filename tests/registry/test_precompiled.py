"""Compiled definitions equal the files they are compiled from, and are never used for other contents."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opshift.opsets import OPSETS
from opshift.registry.definition_files import CONSUMERS, RELEASES
from opshift.registry.ir_versions import IR_VERSIONS, read_ir_versions
from opshift.registry.loader import load_operator
from opshift.registry.models import Operator
from opshift.registry.precompiled import MAX_CACHED_STATES, CompiledFile, load_precompiled, packaged_file
from opshift.registry.registry import default_registry
from opshift.registry.releases import Releases

pytestmark = pytest.mark.every_case

ROOT = Path(__file__).parents[2]
DEFINITION_FILES = [
    default_registry().file_of(name, domain)
    for domain in default_registry().domains()
    for name in default_registry().names(domain)
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "opshift"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "ReduceMean.yaml"
    path.write_text("since_version: 1\n", "utf-8")
    return path


class Builder:
    """Function that returns a different text on each call."""

    calls = 0

    def __call__(self) -> str:
        """Return the number of this call."""
        self.calls += 1
        return str(self.calls)


def _checkout(*dependencies: Path) -> CompiledFile:
    return CompiledFile(Path("missing.json"), dependencies)


@pytest.mark.parametrize("path", DEFINITION_FILES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_compiled_operator_equals_its_file(path: Path) -> None:
    loaded = load_operator(path, default_registry().types)
    compiled: Operator = load_precompiled(path, [], lambda: loaded)
    assert compiled == loaded
    assert repr(compiled) == repr(loaded)


OTHER_FILES: dict[str, tuple[Path, Callable[[], Any]]] = {
    "releases": (OPSETS / RELEASES, lambda: Releases.from_folder(OPSETS)),
    "IR versions": (IR_VERSIONS, lambda: read_ir_versions(IR_VERSIONS)),
}


@pytest.mark.parametrize(("path", "read"), OTHER_FILES.values(), ids=OTHER_FILES)
def test_other_compiled_content_equals_its_file(path: Path, read: Callable[[], Any]) -> None:
    compiled: Any = load_precompiled(path, [OPSETS / CONSUMERS], read)
    assert compiled == read()
    assert repr(compiled) == repr(read())


def test_reads_files_outside_the_project_directly(source: Path, cache: Path) -> None:
    assert load_precompiled(source, [], lambda: "content") == "content"
    assert not cache.exists()


def test_compiles_a_source_once(source: Path, cache: Path) -> None:
    build = Builder()
    assert [_checkout().text("Relu", [source], build) for _ in range(3)] == ["1"] * 3
    assert len(list((cache / "Relu").iterdir())) == 1


def _edit(path: Path) -> None:
    path.write_text("since_version: 2\n", "utf-8")
    # The two contents have the same size; an edit within the resolution of the file system's clock may also
    # have the same time.
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


def test_compiles_a_changed_source_again(source: Path) -> None:
    build = Builder()
    _checkout().text("Relu", [source], build)
    _edit(source)
    assert _checkout().text("Relu", [source], build) == "2"


def test_compiles_a_source_with_a_restored_time_again(source: Path) -> None:
    build, before = Builder(), source.stat()
    _checkout().text("Relu", [source], build)
    time.sleep(0.02)  # longer than the resolution of the file system's clock
    source.write_text("since_version: 2\n", "utf-8")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert _checkout().text("Relu", [source], build) == "2"


def test_compiles_again_when_a_source_appears_or_disappears(source: Path, tmp_path: Path) -> None:
    build, other = Builder(), tmp_path / "types.yaml"
    _checkout().text("Relu", [source, other], build)
    other.touch()
    assert _checkout().text("Relu", [source, other], build) == "2"
    source.unlink()
    assert _checkout().text("Relu", [source, other], build) == "3"


@pytest.mark.parametrize("name", ["Relu.yaml", "code.py"])
def test_compiles_again_when_a_dependency_changes(name: str, tmp_path: Path) -> None:
    build, path = Builder(), tmp_path / "code" / "shapes" / name
    path.parent.mkdir(parents=True)
    path.touch()
    _checkout(tmp_path / "code").text("Relu", [], build)
    _edit(path)
    assert _checkout(tmp_path / "code").text("Relu", [], build) == "2"


def test_checkouts_share_texts_of_equal_sources(source: Path, tmp_path: Path) -> None:
    build = Builder()

    def checkout(name: str) -> str:
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(source, folder)
        base = CompiledFile(Path("missing.json"), [folder])
        file = CompiledFile(Path("missing.json"), [folder], base, by_content=True)
        return file.text("Relu", [folder / source.name], build)

    assert [checkout("one"), checkout("two")] == ["1", "1"]
    _edit(source)
    assert checkout("three") == "2"


def test_keeps_the_newest_states(source: Path, cache: Path) -> None:
    build = Builder()
    for _ in range(MAX_CACHED_STATES + 3):
        _checkout().text("Relu", [source], build)
        _edit(source)
    kept = [each.read_text() for each in (cache / "Relu").iterdir()]
    assert sorted(map(int, kept)) == list(range(4, MAX_CACHED_STATES + 4))


@pytest.mark.parametrize("content", [b"", b"1", b"\xff\n"])
def test_replaces_a_damaged_copy(content: bytes, source: Path, cache: Path) -> None:
    build = Builder()
    _checkout().text("Relu", [source], build)
    (path,) = (cache / "Relu").iterdir()
    path.write_bytes(content)
    assert _checkout().text("Relu", [source], build) == "2"
    assert path.read_text() == "2\n"


def test_works_without_a_writable_cache(source: Path, cache: Path) -> None:
    cache.parent.touch()  # a file in place of the folder
    build = Builder()
    assert [_checkout().text("Relu", [source], build) for _ in range(2)] == ["1", "2"]


def test_works_without_a_home_folder(source: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    build = Builder()
    assert [_checkout().text("Relu", [source], build) for _ in range(2)] == ["1", "2"]


def test_concurrent_processes_share_the_cache(source: Path, cache: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from opshift.registry.precompiled import CompiledFile\n"
        "source = Path(sys.argv[1])\n"
        "for name in map(str, range(30)):\n"
        "    file = CompiledFile(Path('missing.json'), [])\n"
        "    assert file.text(name, [source], lambda: '[]').strip() == '[]'\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", script, str(source)]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert [path.read_text() for path in cache.rglob("*.*")] == ["[]\n"] * 30


@pytest.fixture
def packaged(tmp_path: Path, source: Path) -> Path:
    """A file of a wheel with one text."""
    file, path = _checkout(), tmp_path / "compiled.json"
    texts = file.record()
    file.text("Relu", [source], lambda: '{"a": 1}')
    path.write_text(packaged_file({**texts, "Sin 0": "[2]"}), "ascii")
    return path


def test_wheel_has_its_texts(packaged: Path, source: Path) -> None:
    texts = json.loads(packaged.read_text())
    assert list(texts.values()) == [{"a": 1}, [2]]
    assert CompiledFile(packaged, []).text("Relu", [source], Builder()) == '{"a": 1}'


def test_wheel_reads_a_changed_source(packaged: Path, source: Path, cache: Path) -> None:
    shutil.rmtree(cache)
    _edit(source)
    assert CompiledFile(packaged, []).text("Relu", [source], Builder()) == "1"
    assert not cache.exists()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages that a conversion needs."""
    for name in (
        "model",
        "registry",
        "inference",
        "adapters",
        "checker",
        "stores",
        "rewriting",
        "runtimes",
        "converter",
        "analysis",
        "opsets",
    ):
        shutil.copytree(ROOT / "src" / "opshift" / name, tmp_path / "tree" / "opshift" / name)
    shutil.copy(ROOT / "src" / "opshift" / "__init__.py", tmp_path / "tree" / "opshift")
    return tmp_path / "tree"


CONVERSION = """
import sys, opshift
try:
    opshift.convert_version(sys.argv[1], 17)
except opshift.ConversionRefused as error:
    print(error.refusals[0].reason)
else:
    print(sorted({"networkx", "pydantic", "yaml"} & sys.modules.keys()))
"""
GOLDEN = ROOT / "tests" / "golden" / "segmenter-9.onnx"


def _convert(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CONVERSION, str(GOLDEN)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.full
def test_checkout_sees_a_changed_definition(tree: Path) -> None:
    assert [_convert(tree).stdout for _ in range(2)] == ["['networkx', 'pydantic', 'yaml']\n", "[]\n"]
    path = tree / "opshift" / "opsets" / "ai.onnx" / "ReduceMean.yaml"
    version, step = "- since_version: 13\n", "  step: {up: {refuse: the test refuses it}}\n"
    path.write_text(path.read_text("utf-8").replace(version, version + step), "utf-8")
    assert [_convert(tree).stdout for _ in range(2)] == ["the test refuses it\n"] * 2


@pytest.mark.full
def test_an_invalid_definition_fails_conversions_of_its_operator_only(tree: Path) -> None:
    reduce_mean = tree / "opshift" / "opsets" / "ai.onnx" / "ReduceMean.yaml"
    gelu = tree / "opshift" / "opsets" / "ai.onnx" / "Gelu.yaml"
    gelu.write_text("domain: ai.onnx\nname: Gelu\n", "utf-8")
    assert _convert(tree).returncode == 0
    reduce_mean.write_text("domain: ai.onnx\nname: ReduceMean\n", "utf-8")
    assert "opsets/ai.onnx/ReduceMean.yaml" in _convert(tree).stderr.replace(os.sep, "/")


@pytest.mark.full
def test_an_invalid_list_of_releases_fails_conversions_but_no_import(tree: Path) -> None:
    (tree / "opshift" / "opsets" / "releases.yaml").write_text("onnx: 1\n", "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    subprocess.run([sys.executable, "-c", "import opshift.converter.convert"], env=environment, check=True)
    failed = _convert(tree)
    assert failed.returncode == 1
    assert "opsets/releases.yaml" in failed.stderr.replace(os.sep, "/")
