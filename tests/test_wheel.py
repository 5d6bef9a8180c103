"""The wheel holds what the tree holds: an include list that forgets something fails here."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOMES = {
    "opshift/registry": ROOT / "registry",
    "opshift/adapters": ROOT / "adapters",
    "opshift/converter": ROOT / "converter",
    "opshift/proposals": ROOT / "proposals",
    "opshift/opsets": ROOT / "opsets",
    "opshift/cli": ROOT / "src" / "opshift" / "cli",
}
PACKAGED = {".py", ".pyi", ".yaml", ".binpb", ".proto", ".json"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def packaged(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


@pytest.mark.parametrize("package", HOMES)
def test_every_file_of_a_package_is_in_the_wheel_and_nothing_else(package: str, packaged: set[str]) -> None:
    home = HOMES[package]
    there = {
        f"{package}/{path.relative_to(home).as_posix()}"
        for path in home.rglob("*")
        if path.is_file() and path.suffix in PACKAGED
    }
    assert there, f"{home} is empty"
    assert {name for name in packaged if name.startswith(f"{package}/")} == there


def test_beside_the_packages_there_is_only_the_front(packaged: set[str]) -> None:
    rest = {name for name in packaged if not any(name.startswith(f"{package}/") for package in HOMES)}
    top = ROOT / "src" / "opshift"
    assert rest == {f"opshift/{path.name}" for path in top.iterdir() if path.suffix in (".py", ".typed")}


def test_files_in_the_wheel_are_those_of_the_tree(wheel: zipfile.ZipFile, packaged: set[str]) -> None:
    for name in packaged:
        assert wheel.read(name) == (ROOT / "src" / name).read_bytes(), name


def test_the_wheel_has_its_licence_and_its_command(wheel: zipfile.ZipFile) -> None:
    info = {name.rsplit("/", 1)[1] for name in wheel.namelist() if ".dist-info/" in name}
    assert {"LICENSE", "METADATA", "entry_points.txt"} <= info


def test_the_wheel_works_without_the_tree(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """Unpacked elsewhere, before anything else on the path, it finds its definitions."""
    wheel.extractall(tmp_path)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import opshift; print(opshift.__file__);"
        "print(opshift.default_registry().get_schema('Softmax', 12).id)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == [str(tmp_path / "opshift" / "__init__.py"), "ai.onnx.Softmax:11"]
