"""Contents of the wheel: the include list must cover the source tree, and the compiled files are added."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from support.unmeasured import unmeasured

ROOT = Path(__file__).parents[1]
FOLDERS_AT_THE_TOP = ("opsets", "registry", "adapters", "converter", "docs")
PACKAGE_FOLDERS = {f"opshift/{name}": ROOT / name for name in FOLDERS_AT_THE_TOP} | {
    f"opshift/{folder.name}": folder
    for folder in (ROOT / "src" / "opshift").iterdir()
    if folder.is_dir() and folder.name not in (*FOLDERS_AT_THE_TOP, "__pycache__")
}
SUFFIXES = {
    ".py",
    ".pyi",
    ".yaml",
    ".binpb",
    ".proto",
    ".json",
    ".template",
    ".md",
    ".html",
    ".css",
    ".png",
    ".js",
    ".svg",
}


COMPILED = {
    "opshift/registry/compiled.json",
    "opshift/registry/descriptions.json",
    "opshift/rewriting/compiled.json",
    "opshift/converter/recognition/compiled.json",
    "opshift/data/operators.json",
    "opshift/data/schema.json",
    "opshift/version.txt",
}
MAX_WHEEL_BYTES = 2_600_000
SDIST_ONLY = {
    *("fingerprints.yaml", "runtime_fingerprints.yaml", "schema.json", "schema-runtime.json"),
    *("architecture.md", "changes.md", "conversions.md", "downgrades.md", "runtimes.md"),
    *("definition-rules.md", "platform-teams.md", "proposal-rules.md", "proposals.md"),
    *("site.md", "specification.md", "specification-editions.md"),
}
"""Files of `opsets` that only changes of the definitions, and editors, need; pages about the repository."""

EXAMPLES = ROOT / "src" / "opshift" / "proposals" / "examples"
"""Proposals that only documentation and tests use."""


def _build(target: str, source: Path, folder: Path) -> Path:
    """Build a `wheel`, `sdist` or `editable` of a source tree into an empty folder, and return its path."""
    script = f"import sys; from hatchling import build; build.build_{target}(sys.argv[1])"
    # The packages of this environment have to be found without the source tree that is tested.
    environment = {name: value for name, value in unmeasured().items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", script, str(folder)]
    completed = subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    (path,) = folder.iterdir()
    return path


def _source(name: str) -> Path:
    """Return the source of a file of the wheel; a checkout may have no links in `src/opshift`."""
    for package, folder in PACKAGE_FOLDERS.items():
        if name.startswith(f"{package}/"):
            return folder / name.removeprefix(f"{package}/")
    return ROOT / "src" / name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(_build("wheel", ROOT, tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def packaged(wheel: zipfile.ZipFile) -> set[str]:
    """Return the files of the wheel that come from the source tree."""
    return {name for name in wheel.namelist() if ".dist-info/" not in name} - COMPILED


@pytest.mark.full
def test_wheel_has_the_compiled_files(wheel: zipfile.ZipFile) -> None:
    assert set(wheel.namelist()) >= COMPILED
    assert not any(_source(name).exists() for name in COMPILED)


def test_wheel_is_small(wheel: zipfile.ZipFile) -> None:
    assert sum(each.compress_size for each in wheel.infolist()) < MAX_WHEEL_BYTES


@pytest.mark.full
def test_sdist_builds_the_same_wheel(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    for name in ("sdist", "source", "wheel"):
        (tmp_path / name).mkdir()
    with tarfile.open(_build("sdist", ROOT, tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    built = zipfile.ZipFile(_build("wheel", source, tmp_path / "wheel"))
    assert {name: built.read(name) for name in built.namelist()} == {
        name: wheel.read(name) for name in wheel.namelist()
    }


def test_editable_installation_compiles_nothing(tmp_path: Path) -> None:
    names = zipfile.ZipFile(_build("editable", ROOT, tmp_path)).namelist()
    assert not any(name.endswith("compiled.json") for name in names)


@pytest.mark.parametrize("package", PACKAGE_FOLDERS)
def test_wheel_has_exactly_the_files_of_each_package(package: str, packaged: set[str]) -> None:
    folder = PACKAGE_FOLDERS[package]
    expected = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in SUFFIXES and path.name not in SDIST_ONLY
        if EXAMPLES not in path.parents
    }
    assert expected, f"{folder} is empty"
    assert {name for name in packaged if name.startswith(f"{package}/")} == expected


def test_wheel_has_only_top_level_modules_besides_packages(packaged: set[str]) -> None:
    rest = {
        name for name in packaged if not any(name.startswith(f"{package}/") for package in PACKAGE_FOLDERS)
    }
    top = ROOT / "src"
    files = (path for folder in (top, top / "opshift") for path in folder.iterdir())
    assert rest == {path.relative_to(top).as_posix() for path in files if path.suffix in (".py", ".typed")}


def test_files_in_wheel_equal_source_files(wheel: zipfile.ZipFile, packaged: set[str]) -> None:
    for name in packaged:
        assert wheel.read(name) == _source(name).read_bytes(), name


def test_wheel_has_licence_and_command(wheel: zipfile.ZipFile) -> None:
    info = {name.rsplit("/", 1)[1] for name in wheel.namelist() if ".dist-info/" in name}
    assert {"LICENSE", "METADATA", "entry_points.txt", "opshift.cdx.json"} <= info


def test_wheel_works_without_source_tree(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """Unpacked elsewhere and first on the path, the package finds its definitions."""
    wheel.extractall(tmp_path)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import opshift; print(opshift.__file__);"
        "print(opshift.default_registry().get_schema('Softmax', 12).id)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    completed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert completed.stdout.split() == [str(tmp_path / "opshift" / "__init__.py"), "ai.onnx.Softmax:11"]


CONVERSION = """
import sys
already_loaded = set(sys.modules)  # coverage loads hashlib in each process that it measures
sys.path.insert(0, sys.argv[1])
def loaded():
    return sorted({"hashlib", "networkx", "pydantic", "yaml"} & sys.modules.keys() - already_loaded)
import opshift
opshift.convert_version(sys.argv[2], 17)
print(opshift.__file__, loaded())
assert all(version.doc for version in opshift.default_registry().get_all_schemas_with_history())
print(loaded())
"""


def test_wheel_reads_compiled_files_only(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    model = ROOT / "tests" / "golden" / "segmenter-9.onnx"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", CONVERSION, str(tmp_path), str(model)]
    completed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert completed.stdout.splitlines() == [f"{tmp_path / 'opshift' / '__init__.py'} []", "[]"]
    assert not (tmp_path / "cache").exists()
