"""`opshift breaking`: two trees, git revisions, the history of one tree, and waivers."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import pytest
from support.sarif import read_run
from typer.testing import Result

from opshift.cli.options import Format
from opshift.cli.registry.changes import _baseline_tree, breaking
from opshift.cli.registry.revisions import unpacked
from opshift.model.errors import UsageError
from opshift.registry.errors import DefinitionError

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


def test_prints_findings_as_sarif(run: Run, acme: Path, changed_definitions: Path) -> None:
    result = run("breaking", "new", "--against", "acme", "--format", "sarif")
    assert result.exit_code == 1
    found = read_run(result.stdout)["results"]
    assert [each["ruleId"] for each in found] == ["default-changed"] * 2
    places = [each["locations"][0] for each in found]
    assert [each["logicalLocations"][0]["fullyQualifiedName"] for each in places] == [
        "com.acme.FastConv:2",
        "com.acme.FastConv:3",
    ]
    files = {each["physicalLocation"]["artifactLocation"]["uri"] for each in places}
    assert files == {"new/com.acme/FastConv.yaml"}
    lines = Path("new/com.acme/FastConv.yaml").read_text("utf-8").splitlines()
    starts = [lines[each["physicalLocation"]["region"]["startLine"] - 1] for each in places]
    assert starts == ["- since_version: 2", "- since_version: 3"]


def test_deleted_definition_as_annotation(run: Run, acme: Path, changed_definitions: Path) -> None:
    blur = Path("acme/com.acme/Blur.yaml")
    blur.write_text((acme / "com.acme/FastConv.yaml").read_text("utf-8").replace("FastConv", "Blur"), "utf-8")
    lines = run("breaking", "new", "--against", "acme", "--format", "github").stdout.splitlines()
    deleted = "error file=new/com.acme/Blur.yaml,line=1,title=version-deleted"
    assert [each.split("::")[1] for each in lines[:2]] == [deleted, deleted]
    assert [each.split(",")[0] for each in lines[2:]] == ["::error file=new/com.acme/FastConv.yaml"] * 2


def test_waived_findings_are_notes(run: Run, acme: Path, changed_definitions: Path) -> None:
    until = date.today() + timedelta(days=1)
    waiver = {"rule": "default-changed", "operator": "com.acme.FastConv", "reason": "no model relies on it"}
    Path("waivers.yaml").write_text(json.dumps([{**waiver, "until": str(until)}]), "utf-8")
    command = ("breaking", "new", "--against", "acme", "--waivers", "waivers.yaml", "--format", "sarif")
    result = run(*command)
    assert result.exit_code == 0
    found = read_run(result.stdout)
    assert [each["level"] for each in found["results"]] == ["note", "note"]
    assert f"waived until {until}: no model relies on it" in found["results"][0]["message"]["text"]
    assert found["invocations"][0]["exitCode"] == 0


def test_sarif_of_invalid_definitions(run: Run, acme: Path, changed_definitions: Path) -> None:
    Path("new/com.acme/FastConv.yaml").write_text("domain: [", "utf-8")
    with redirect_stdout(io.StringIO()) as printed, pytest.raises(DefinitionError):
        breaking(Path("new"), "acme", form=Format.SARIF)
    (invocation,) = read_run(printed.getvalue())["invocations"]
    assert not invocation["executionSuccessful"]
    assert (
        "new/com.acme/FastConv.yaml:2: yaml.syntax"
        in invocation["toolExecutionNotifications"][0]["message"]["text"]
    )


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


def _git(folder: Path, *arguments: str, content: bytes = b"") -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, cwd=folder, input=content)
    return done.stdout.decode().strip()


def test_compares_with_git_revision(run: Run, acme: Path) -> None:
    git = partial(_git, acme.parent)
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


@pytest.mark.parametrize("extra", ["attributes", "link", "link of a folder", "an unusual name"])
def test_reads_all_regular_files_of_a_revision(run: Run, acme: Path, extra: str) -> None:
    """Attributes do not hide definitions, and links out of the folder are neither followed nor created."""
    if extra == "attributes":
        (acme / ".gitattributes").write_text("com.acme/* export-ignore\n", encoding="utf-8")
    elif extra == "an unusual name":
        (acme / "com.acme" / "a \u00e9 'b'.txt").write_text("", encoding="utf-8")
    else:
        target = "/etc/hostname" if extra == "link" else acme.parent
        (acme / "com.acme" / "link").symlink_to(target)
    for command in (["init"], ["add", "acme"], ["commit", "-m", "first"]):
        _git(acme.parent, *command)
    path = acme / "com.acme" / "FastConv.yaml"
    path.write_text(path.read_text("utf-8").replace("minimum: 0", "minimum: 0.05"), encoding="utf-8")
    result = run("breaking", "acme", "--against", "HEAD")
    assert (result.exit_code, result.stderr) == (1, "")
    assert "values-removed" in result.stdout
    with unpacked("HEAD", acme) as folder:
        assert not [each for each in folder.rglob("*") if each.is_symlink()]
        assert (folder / "com.acme" / "FastConv.yaml").read_text("utf-8") != path.read_text("utf-8")


def _commit_links(acme: Path, links: dict[str, str]) -> None:
    """Move the definition and its folder to `shared`, and commit links."""
    (acme / "shared").mkdir()
    (acme / "com.acme").rename(acme / "shared" / "acme")
    text = (acme / "shared" / "acme" / "FastConv.yaml").read_text("utf-8")
    (acme / "shared" / "FastConv.txt").write_text(text, encoding="utf-8")
    for link, target in links.items():
        (acme / link).parent.mkdir(exist_ok=True)
        (acme / link).symlink_to(target)
    for command in (["init"], ["add", "acme"], ["commit", "-m", "first"]):
        _git(acme.parent, *command)


@pytest.mark.parametrize(
    "links",
    [
        pytest.param({"com.acme/FastConv.yaml": "../shared/FastConv.txt"}, id="file"),
        pytest.param(
            {"com.acme/FastConv.yaml": "first.txt", "com.acme/first.txt": "../shared/acme/FastConv.yaml"},
            id="link to a link",
        ),
        pytest.param({"com.acme": "shared/acme"}, id="folder"),
        pytest.param(
            {"com.acme/FastConv.yaml": "../shared/newest/FastConv.yaml", "shared/newest": "./acme/."},
            id="file in a linked folder",
        ),
        pytest.param(
            {
                "com.acme": "shared/acme",
                "README": "/etc/hostname",
                "docs": "/etc",
                "missing": "none",
                "shared/acme/Old.txt": "../../..",
                "shared/other/Deep.yaml": "../../..",
                "shared/loop": "loop",
                ".hidden": "../acme/shared/acme",
            },
            id="others out of the folder",
        ),
    ],
)
def test_follows_links_in_a_revision(run: Run, acme: Path, links: dict[str, str]) -> None:
    _commit_links(acme, links)
    assert run("breaking", "acme", "--against", "HEAD").exit_code == 0
    with unpacked("HEAD", acme) as folder:
        followed = [each.resolve() for each in folder.rglob("*") if each.is_symlink()]
        assert all(each.exists() and each.is_relative_to(folder.resolve()) for each in followed)
    path = acme / "com.acme" / "FastConv.yaml"
    path.write_text(path.read_text("utf-8").replace("minimum: 0", "minimum: 0.05"), encoding="utf-8")
    result = run("breaking", "acme", "--against", "HEAD")
    assert (result.exit_code, result.stderr) == (1, "")
    assert "values-removed" in result.stdout


@pytest.mark.parametrize(
    ("link", "target", "others"),
    [
        pytest.param("com.acme/FastConv.yaml", "../../outside/FastConv.yaml", {}, id="relative"),
        pytest.param("com.acme/FastConv.yaml", "{outside}/FastConv.yaml", {}, id="absolute"),
        pytest.param(
            "com.acme/FastConv.yaml", "../../acme/shared/FastConv.txt", {}, id="back into the folder"
        ),
        pytest.param("com.acme/FastConv.yaml", "FastConv.yaml", {}, id="loop"),
        pytest.param("com.acme/FastConv.yaml", "none.yaml", {}, id="missing"),
        pytest.param("com.acme", "../outside", {}, id="folder"),
        pytest.param(
            "shared/acme/Blur.yaml", "/etc/hostname", {"com.acme": "shared/acme"}, id="in a linked folder"
        ),
        pytest.param("releases.yaml", "../outside/releases.yaml", {}, id="releases"),
    ],
)
def test_refuses_definitions_out_of_the_folder_of_a_revision(
    acme: Path, link: str, target: str, others: dict[str, str]
) -> None:
    outside = acme.parent / "outside"
    shutil.copytree(acme / "com.acme", outside)
    target = target.format(outside=outside)
    _commit_links(acme, {link: target, **others})
    with pytest.raises(UsageError, match=f"lacks the content of {link}, a link to '{target}'"):
        _baseline_tree("HEAD", acme)


def test_refuses_a_domain_in_a_submodule(acme: Path) -> None:
    for command in (["init"], ["add", "."], ["commit", "-m", "first"]):
        _git(acme / "com.acme", *command)
    (acme / "note.txt").write_text("", encoding="utf-8")
    for command in (["init"], ["add", "acme"], ["commit", "-m", "first"]):
        _git(acme.parent, *command)
    with pytest.raises(UsageError, match=r"lacks the content of com\.acme, a submodule"):
        _baseline_tree("HEAD", acme)


def test_refuses_a_revision_without_the_folder(run: Run, acme: Path) -> None:
    (acme.parent / "note.txt").write_text("", encoding="utf-8")
    for command in (["init"], ["add", "note.txt"], ["commit", "-m", "first"]):
        _git(acme.parent, *command)
    result = run("breaking", "acme", "--against", "HEAD")
    assert result.exit_code == 2
    assert "git revision 'HEAD' has no files of the folder" in result.stderr


def test_refuses_names_that_lead_out_of_the_folder(run: Run, acme: Path) -> None:
    git = partial(_git, acme)
    git("init")
    blob = git("hash-object", "-w", "--stdin", content=b"text")
    tree = b""
    for depth in range(4):
        name, mode, found = (b"evil.txt", b"100644", blob) if depth == 0 else (b"..", b"40000", tree.decode())
        entry = mode + b" " + name + b"\0" + bytes.fromhex(found)
        tree = git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", content=entry).encode()
    result = run("breaking", "acme", "--against", tree.decode())
    assert result.exit_code == 2
    assert "is outside of the folder" in result.stderr


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
