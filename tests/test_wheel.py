"""Contents of the wheel: its explicit include list must cover the whole source tree."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE_FOLDERS = {
    "opshift/model": ROOT / "model",
    "opshift/registry": ROOT / "registry",
    "opshift/inference": ROOT / "inference",
    "opshift/adapters": ROOT / "adapters",
    "opshift/checker": ROOT / "checker",
    "opshift/converter": ROOT / "converter",
    "opshift/analysis": ROOT / "analysis",
    "opshift/proposals": ROOT / "proposals",
    "opshift/opsets": ROOT / "opsets",
    "opshift/cli": ROOT / "src" / "opshift" / "cli",
}
SUFFIXES = {".py", ".pyi", ".yaml", ".binpb", ".proto", ".json"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def packaged(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


@pytest.mark.parametrize("package", PACKAGE_FOLDERS)
def test_wheel_has_exactly_the_files_of_each_package(package: str, packaged: set[str]) -> None:
    folder = PACKAGE_FOLDERS[package]
    expected = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in SUFFIXES
    }
    assert expected, f"{folder} is empty"
    assert {name for name in packaged if name.startswith(f"{package}/")} == expected


def test_wheel_has_only_top_level_modules_besides_packages(packaged: set[str]) -> None:
    rest = {
        name for name in packaged if not any(name.startswith(f"{package}/") for package in PACKAGE_FOLDERS)
    }
    top = ROOT / "src" / "opshift"
    assert rest == {f"opshift/{path.name}" for path in top.iterdir() if path.suffix in (".py", ".typed")}


def test_files_in_wheel_equal_source_files(wheel: zipfile.ZipFile, packaged: set[str]) -> None:
    for name in packaged:
        assert wheel.read(name) == (ROOT / "src" / name).read_bytes(), name


def test_wheel_has_licence_and_command(wheel: zipfile.ZipFile) -> None:
    info = {name.rsplit("/", 1)[1] for name in wheel.namelist() if ".dist-info/" in name}
    assert {"LICENSE", "METADATA", "entry_points.txt"} <= info


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
