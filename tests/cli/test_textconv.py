"""`opshift textconv`, alone and as a textconv driver of git."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from typer.testing import Result

Run = Callable[..., Result]


def git(*arguments: str) -> str:
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": os.getcwd(),
    }
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", *arguments]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture
def repository(folder: Path, old_model: Path) -> Path:
    """Create a repository with a committed model, as the help describes."""
    git("init", "-q")
    git("config", "diff.onnx.textconv", f"{shlex.quote(sys.executable)} -m opshift textconv")
    (folder / ".gitattributes").write_text("*.onnx diff=onnx\n")
    git("add", ".")
    git("commit", "-q", "-m", "Add model")
    return old_model


def changed_lines(diff: str) -> list[str]:
    return [each for each in diff.splitlines() if each[:1] in "+-" and each[:3] not in ("+++", "---")]


@pytest.mark.full
def test_git_diff_shows_changed_node(repository: Path) -> None:
    model = onnx.load(repository)
    node = model.graph.node[0]
    old = node.op_type
    node.op_type = "Changed"
    onnx.save(model, repository)
    removed, added = changed_lines(git("diff"))
    assert removed.startswith("-")
    assert f" = {old}" in removed
    assert " = Changed" in added
    git("commit", "-q", "-a", "-m", "Change a node")
    assert " = Changed" in git("log", "-p", "-1")


def test_git_diff_survives_files_that_are_not_models(repository: Path) -> None:
    repository.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4bcd\nsize 218\n")
    added = [each for each in changed_lines(git("diff")) if each.startswith("+")]
    assert added[0] == "+is not an ONNX model: it is a Git LFS pointer: the file itself was not downloaded"
    assert added[1].startswith("+sha256 ")


def test_prints_lines(run: Run, old_model: Path) -> None:
    result = run("textconv", "old.onnx")
    lines = result.stdout.splitlines()
    assert (result.exit_code, lines[0].split()[0]) == (0, "ir_version")
    document = json.loads(run("textconv", "old.onnx", "--format", "json").stdout)
    assert document == {"input": "old.onnx", "lines": lines}


def test_escapes_control_characters(run: Run, old_model: Path) -> None:
    model = onnx.load(old_model)
    model.graph.node[0].name = "red \x1b[31m \x9b"
    onnx.save(model, old_model)
    text = run("textconv", "old.onnx").stdout
    assert not {"\x1b", "\x9b"} & set(text)


def test_names_that_are_not_utf_8(run: Run, old_model: Path) -> None:
    model = onnx.load(old_model)
    model.graph.node[0].name = "mark"
    old_model.write_bytes(model.SerializeToString().replace(b"mark", b"m\xffrk"))
    result = run("textconv", "old.onnx")
    assert result.exit_code == 0
    assert result.stdout


def test_missing_file_is_wrong_usage(run: Run) -> None:
    assert run("textconv", "absent.onnx").exit_code == 2
