"""`opshift breaking`: two trees, git revisions, the history of one tree, and waivers."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def changed_definitions(acme: Path) -> Path:
    """Write `new`: a copy of `acme` with a different default in both versions."""
    new = acme.parent / "new"
    shutil.copytree(acme, new)
    path = new / "com.acme" / "FastConv.yaml"
    path.write_text(path.read_text("utf-8").replace("default: 0.1", "default: 0.2"), encoding="utf-8")
    return new


def test_accepts_unchanged_definitions(run: Run, acme: Path) -> None:
    result = run("breaking", "acme", "--against", "acme")
    assert (result.exit_code, result.stdout) == (0, "no breaking changes\n")


def test_reports_changed_published_version(run: Run, acme: Path, changed_definitions: Path) -> None:
    result = run("breaking", "new", "--against", "acme")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert lines[1].startswith("com.acme.FastConv:2 changes-default default-changed attribute default: speed")
    assert lines[-2:] == ["help: restore the published version, and append a new one", "2 findings"]


def test_prints_findings_as_json(run: Run, acme: Path, changed_definitions: Path) -> None:
    data = json.loads(run("breaking", "new", "--against", "acme", "--format", "json").stdout)
    assert data["counts"] == {"findings": 2, "waived": 0}
    assert [each["operator"] for each in data["findings"]] == ["com.acme.FastConv:2", "com.acme.FastConv:3"]
    assert data["findings"][0]["rule"] == "default-changed"


@pytest.mark.parametrize(
    ("days", "operator", "code", "summary"),
    [
        pytest.param(1, "com.acme.FastConv", 0, "no breaking changes, 2 waived", id="both versions"),
        pytest.param(0, "com.acme.FastConv:2", 1, "1 finding, 1 waived", id="one version, today"),
        pytest.param(-1, "com.acme.FastConv", 1, "2 findings", id="expired"),
        pytest.param(1, "com.acme.SlowConv", 1, "2 findings", id="different operator"),
    ],
)
def test_applies_waivers(
    run: Run, acme: Path, changed_definitions: Path, days: int, operator: str, code: int, summary: str
) -> None:
    until = date.today() + timedelta(days=days)
    line = f"- {{rule: default-changed, operator: {operator}, reason: not used yet, until: {until}}}\n"
    Path("waivers.yaml").write_text(line, encoding="utf-8")
    result = run("breaking", "new", "--against", "acme", "--waivers", "waivers.yaml")
    assert result.exit_code == code
    assert result.stdout.splitlines()[-1] == summary
    assert ("expired on" in result.stdout) == (days < 0)
    assert ("unused waiver" in result.stdout) == (operator == "com.acme.SlowConv")


def test_compares_with_git_revision(run: Run, acme: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, cwd=acme.parent)

    git("init")
    git("add", "acme")
    git("commit", "-m", "first")
    git("tag", "v1")
    assert run("breaking", "acme", "--against", "v1").exit_code == 0
    path = acme / "com.acme" / "FastConv.yaml"
    path.write_text(path.read_text("utf-8").replace("minimum: 0", "minimum: 0.05"), encoding="utf-8")
    result = run("breaking", "acme", "--against", "v1")
    assert result.exit_code == 1
    assert "values-removed" in result.stdout
    assert run("breaking", "acme", "--against", "HEAD").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        pytest.param(["none"], "folder does not exist", 2, id="no tree"),
        pytest.param(["acme", "--against", "none"], "neither a folder nor a git revision", 2, id="no base"),
        pytest.param(
            ["acme", "--against", "--output=x"],
            "neither a folder nor a git revision",
            2,
            id="option instead of a base",
        ),
        pytest.param(["."], "contains no operator definitions", 1, id="no definitions"),
        pytest.param(["acme", "--waivers", "none.yaml"], "cannot be read", 1, id="no waivers"),
        pytest.param(["acme", "--policy", "loose"], "unknown policy 'loose'", 2, id="no policy"),
    ],
)
def test_refuses_invalid_arguments(
    run: Run, acme: Path, arguments: list[str], message: str, code: int
) -> None:
    if arguments == ["."]:
        Path("empty").mkdir()
        arguments = ["empty"]
    result = run("breaking", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr


# History of one tree


def test_classifies_history_of_onnx(run: Run) -> None:
    result = run("breaking", "--format", "json")
    data = json.loads(result.stdout)
    assert result.exit_code == 0
    assert sum(data["classes"].values()) >= 432
    assert data["findings"] == []


@pytest.mark.parametrize(
    ("mode", "code", "rules"),
    [
        ("none", 0, set()),
        ("backward", 1, {"attribute-removed", "operator-removed"}),
        ("forward", 1, {"behaviour-added", "operator-removed"}),
        ("full-transitive", 1, {"attribute-removed", "behaviour-added", "operator-removed"}),
    ],
)
def test_mode_selects_findings_of_history(
    run: Run, acme: Path, mode: str, code: int, rules: set[str]
) -> None:
    result = run("breaking", "acme", "--mode", mode, "--format", "json")
    assert result.exit_code == code
    assert {each["rule"] for each in json.loads(result.stdout)["findings"]} == rules


def test_prints_history_as_text(run: Run, acme: Path) -> None:
    lines = [" ".join(line.split()) for line in run("breaking", "acme").stdout.splitlines()]
    assert lines[0] == "2 steps in the history"
    assert any(line.startswith("narrows 1 ") for line in lines)


def test_lists_and_explains_rules(run: Run) -> None:
    assert "default-changed" in run("breaking", "--rules").stdout
    assert run("breaking", "--explain", "default-changed").stdout.startswith("default-changed\n")
