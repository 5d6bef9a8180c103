"""The hooks of pre-commit and the development dependencies use the same versions of the tools."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


def test_hooks_and_development_dependencies_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = {*project["dependencies"], *project["optional-dependencies"]["dev"]}
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    wanted = [each for hook in repository["hooks"] for each in hook["additional_dependencies"]]
    assert [each for each in wanted if each not in known] == []
