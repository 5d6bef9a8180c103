"""Files that name versions of packages agree: pyproject.toml, its locks, and the hooks of pre-commit."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
DEVELOPMENT = [
    each for each in (*PROJECT["dependencies"], *EXTRAS["test"], *EXTRAS["dev"]) if "[test]" not in each
]
INSTALLED_OLDEST = ("site", "stores", "s3", "onnx-ir")


def _name(requirement: Requirement) -> str:
    return re.sub(r"[-_.]+", "-", requirement.name).lower()


def _locked(name: str) -> dict[str, list[Version]]:
    """Return the versions of each package in a lock; some depend on the version of Python."""
    found: dict[str, list[Version]] = {}
    for line in (ROOT / "tools" / "locks" / f"{name}.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            requirement = Requirement(line)
            (pin,) = requirement.specifier
            assert pin.operator == "==", line
            found.setdefault(_name(requirement), []).append(Version(pin.version))
    return found


def test_hooks_and_development_dependencies_agree() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    wanted = [each for hook in repository["hooks"] for each in hook["additional_dependencies"]]
    assert [each for each in wanted if each not in DEVELOPMENT] == []


def test_lock_for_development_follows_the_declared_dependencies() -> None:
    """Run tools/lock if it does not."""
    locked = _locked("development")
    for requirement in map(Requirement, DEVELOPMENT):
        versions = locked[_name(requirement)]
        assert all(version in requirement.specifier for version in versions), requirement


@pytest.mark.parametrize(
    "text", [*PROJECT["dependencies"], *(each for e in INSTALLED_OLDEST for each in EXTRAS[e])]
)
def test_lock_of_oldest_releases_has_the_declared_minimum(text: str) -> None:
    """Run tools/lock if it does not."""
    requirement = Requirement(text)
    minimum = max(Version(each.version) for each in requirement.specifier if each.operator in (">=", "=="))
    assert _locked("oldest")[_name(requirement)] == [minimum]
