"""`opshift lint`: text, JSON and exit codes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.mistakes import HERE, MISTAKES, VALID
from support.sarif import read_run
from typer.testing import Result

from opshift.registry.lint.rule_table import rule_table

Run = Callable[..., Result]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with two mistakes."""
    path = tmp_path / "acme" / "com.acme" / "Blur.yaml"
    path.parent.mkdir(parents=True)
    text = MISTAKES["misspelt status"].text.replace("up: compatible", "up: compatibel")
    path.write_text(text.replace(HERE, "").replace("T: [floats]", "T: [tensor(float)]"), encoding="utf-8")
    return tmp_path / "acme"


def test_prints_findings_as_text(run: Run, tree: Path) -> None:
    result = run("lint", str(tree))
    file = tree / "com.acme" / "Blur.yaml"
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{file}:6:3: format.choice: versions.0.status: expected 'STABLE' or 'EXPERIMENTAL', got 'STABEL'",
        "  help: did you mean STABLE?",
        f"{file}:20:5: format.choice: versions.1.step.up: expected 'compatible', 'adapter', a mapping or a "
        "list, got 'compatibel'",
        "  help: did you mean compatible?",
        "2 findings",
    ]


def test_prints_findings_as_json(run: Run, tree: Path) -> None:
    result = run("lint", str(tree), "--format", "json")
    assert result.exit_code == 1
    first, second = json.loads(result.stdout)["findings"]
    assert first == {
        "rule": "format.choice",
        "file": str(tree / "com.acme" / "Blur.yaml"),
        "line": 6,
        "column": 3,
        "reason": "versions.0.status: expected 'STABLE' or 'EXPERIMENTAL', got 'STABEL'",
        "remedy": "did you mean STABLE?",
    }
    assert second["line"] == 20


def test_tree_without_mistakes(run: Run, tree: Path) -> None:
    text = VALID.replace("T: [floats]", "T: [tensor(double), tensor(float)]")
    (tree / "com.acme" / "Blur.yaml").write_text(text, encoding="utf-8")
    result = run("lint", str(tree))
    assert (result.exit_code, result.stdout) == (0, "no findings\n")
    assert run("lint", str(tree), "-q").stdout == ""


def test_other_commands_refuse_the_definition(run: Run, tree: Path) -> None:
    result = run("show", "com.acme.Blur", "--opsets", str(tree))
    assert result.exit_code == 1
    assert "Blur.yaml:6: format.choice: versions.0.status: expected 'STABLE'" in result.stderr
    assert ", and 1 more" in result.stderr
    assert "help: did you mean STABLE?" in result.stderr


def test_lists_rules(run: Run) -> None:
    result = run("lint", "--rules", "--format", "json")
    rules = {each["rule"]: each for each in json.loads(result.stdout)["rules"]}
    assert rules["step.missing"]["title"].startswith("The upgrade from the previous version is declared")
    assert "type.unknown" in run("lint", "--rules").stdout


@pytest.mark.parametrize(("arguments", "message"), [([], "TREE is not given"), (["none"], "is not a folder")])
def test_refuses_missing_folder(run: Run, arguments: list[str], message: str) -> None:
    result = run("lint", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_prints_findings_as_sarif(run: Run, tree: Path) -> None:
    result = run("lint", str(tree), "--format", "sarif")
    assert result.exit_code == 1
    found = read_run(result.stdout)
    places = [each["locations"][0]["physicalLocation"] for each in found["results"]]
    assert [each["region"]["startLine"] for each in places] == [6, 20]
    assert places[0]["artifactLocation"]["uri"].endswith("acme/com.acme/Blur.yaml")
    assert found["invocations"][0]["exitCode"] == 1
    assert len(found["tool"]["driver"]["rules"]) == len(rule_table())


def test_prints_findings_as_annotations(run: Run, tree: Path) -> None:
    lines = run("lint", str(tree), "--format", "github").stdout.splitlines()
    file = tree.relative_to(Path.cwd()).as_posix() + "/com.acme/Blur.yaml"
    assert lines == [
        f"::error file={file},line=6,title=format.choice::versions.0.status: expected 'STABLE' or "
        "'EXPERIMENTAL', got 'STABEL'%0Ahelp: did you mean STABLE?",
        f"::error file={file},line=20,title=format.choice::versions.1.step.up: expected 'compatible', "
        "'adapter', a mapping or a list, got 'compatibel'%0Ahelp: did you mean compatible?",
    ]


@pytest.mark.parametrize("form", ["sarif", "github", "gitlab"])
def test_tree_without_mistakes_in_other_formats(run: Run, tree: Path, form: str) -> None:
    text = VALID.replace("T: [floats]", "T: [tensor(double), tensor(float)]")
    (tree / "com.acme" / "Blur.yaml").write_text(text, encoding="utf-8")
    result = run("lint", str(tree), "--format", form)
    assert result.exit_code == 0
    assert not result.stdout.strip() or json.loads(result.stdout) is not None


def test_rules_have_no_findings(run: Run) -> None:
    result = run("lint", "--rules", "--format", "sarif")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--format sarif: the result has no findings" in result.stderr
