"""Annotations of GitHub Actions: escaping, and one annotation per cause if there are many findings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from opshift.cli.findings.finding import FileFinding, ModelResult
from opshift.cli.findings.formats import GithubWriter
from opshift.cli.page import displayable

COMMAND = re.compile(r"::(error|warning|notice) ([^:]*)::(.*)")


def finding(**fields: Any) -> FileFinding:
    given = {"rule": "type.unsupported", "level": "error", "message": "lacks bfloat16", "file": "a.onnx"}
    return FileFinding(**{**given, "place": "graph, node 'a'", "help": "cast it", **fields})


def annotate(
    capsys: pytest.CaptureFixture[str], *findings: FileFinding
) -> list[tuple[str, dict[str, str], str]]:
    """Return command, properties and text of each annotation, decoded as GitHub does."""
    with GithubWriter("plan") as writer:
        writer.add_all(findings)
    found = []
    for line in capsys.readouterr().out.splitlines():
        match = COMMAND.fullmatch(line)
        assert match, line
        command, properties, text = match.groups()
        pairs = dict(each.split("=", 1) for each in properties.split(","))
        found.append((command, {key: _decoded(value) for key, value in pairs.items()}, _decoded(text)))
    return found


def _decoded(text: str) -> str:
    codes = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}
    return re.sub("|".join(codes), lambda match: codes[match.group()], text)


def test_annotation_of_each_finding(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    found = annotate(
        capsys,
        finding(),
        finding(level="warning", file="acme/x.yaml", line=7, place="", help=""),
        finding(level="note", file="s3://zoo/b.onnx"),
    )
    text = "graph, node 'a': lacks bfloat16\nhelp: cast it"
    title = "type.unsupported"
    assert found == [
        ("error", {"file": "a.onnx", "line": "1", "title": title}, text),
        ("warning", {"file": "acme/x.yaml", "line": "7", "title": title}, "lacks bfloat16"),
        ("notice", {"title": title}, f"s3://zoo/b.onnx: {text}"),
    ]


def test_absolute_path_below_working_folder_is_relative(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    ((_, properties, _),) = annotate(capsys, finding(file=str(folder / "zoo" / "a.onnx")))
    assert properties["file"] == "zoo/a.onnx"


@pytest.mark.parametrize(
    "name",
    ["x\n::error::y", "x\r\n::stop-commands::y", "a,line=9::b", "100%", "%0A", "::set-output name=a::b"],
)
def test_hostile_names_stay_in_their_annotation(
    capsys: pytest.CaptureFixture[str], folder: Path, name: str
) -> None:
    ((command, properties, text),) = annotate(
        capsys, finding(file=f"{name}.onnx", place=name, message=name, rule=name, help=name)
    )
    shown = displayable(name)
    assert (command, properties) == ("error", {"file": f"{name}.onnx", "line": "1", "title": shown})
    assert text == f"{displayable(f'{name}: {name}')}\nhelp: {shown}"


def test_many_findings_are_grouped_by_cause(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    many = [finding(file=f"{number // 2}.onnx", place=f"node {number}") for number in range(30)]
    warnings = [finding(level="warning", place=f"node {number}") for number in range(10)]
    found = annotate(capsys, *many, finding(rule="unknown.shape"), *warnings)
    assert [command for command, _, _ in found] == ["error", "error"] + 10 * ["warning"]
    (_, first, text), (_, second, _), *_ = found
    assert first == {"file": "0.onnx", "line": "1", "title": "type.unsupported: 30 findings in 15 files"}
    assert text.endswith("\nfiles: 0.onnx, 1.onnx, 2.onnx, ...")
    assert second["title"] == "unknown.shape"


def test_unreadable_files_are_grouped_by_remedy(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    helps = [*11 * ["run git lfs pull"], "extract it"]
    found = annotate(capsys, *(finding(rule="InvalidModel", place="", help=each) for each in helps))
    assert [(properties["title"], text.split("\n")[1]) for _, properties, text in found] == [
        ("InvalidModel: 11 findings in 1 file", "help: run git lfs pull"),
        ("InvalidModel", "help: extract it"),
    ]


def test_causes_with_most_findings_are_first(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    rules = [f"rule-{number}" for number in range(12) for _ in range(number + 1)]
    found = annotate(capsys, *(finding(rule=each) for each in rules))
    assert [properties["title"].partition(":")[0] for _, properties, _ in found][:2] == ["rule-11", "rule-10"]


def test_interrupted_run_is_an_error(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    with pytest.raises(KeyboardInterrupt), GithubWriter("check") as writer:  # noqa: PT012
        writer.add(ModelResult("a.onnx", False, (finding(),), {}))
        raise KeyboardInterrupt
    first, second = capsys.readouterr().out.splitlines()
    assert first == "::error title=opshift check::The run did not complete; findings may be missing."
    assert second.startswith("::error file=a.onnx,")


def test_summary_of_job(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    (folder / "summary.md").write_text("before\n", encoding="utf-8")
    hostile = "<img src=x> | `a` [b](http://c) \n# d"
    annotate(capsys, finding(message=hostile, file=f"{hostile}.onnx"), finding(level="note"))
    lines = (folder / "summary.md").read_text("utf-8").splitlines()
    assert lines[:5] == ["before", "### opshift plan", "", "1 file with errors", ""]
    assert lines[5] == "| level | cause | findings | files | first |"
    assert lines[7].startswith(
        "| error | type.unsupported | 1 | 1 | \\<img src=x> \\| `a` \\[b\\](http://c) \\# d"
    )
    assert lines[8] == "| note | type.unsupported | 1 | 1 | a.onnx: graph, node 'a': lacks bfloat16 |"


def test_summary_without_findings(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    assert annotate(capsys) == []
    assert (folder / "summary.md").read_text("utf-8").strip() == "### opshift plan\n\n0 files with errors"
