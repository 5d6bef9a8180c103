"""SARIF documents: valid for any names and after interruptions, stable, and within the limits of hosts."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import unquote

import pytest
from support.sarif import read_run

from opshift.cli.findings import formats
from opshift.cli.findings.finding import FileFinding, ModelResult
from opshift.cli.findings.formats import SarifWriter, open_sarif, path_location
from opshift.cli.page import displayable
from opshift.model.errors import UsageError

HOSTILE = 'a [b](mailto:c) {0} "\\ \x1b[31m\n::error::x \u2028 ä 日'


def finding(**fields: Any) -> FileFinding:
    given = {"rule": "type.unsupported", "level": "error", "message": "lacks bfloat16", "file": "a.onnx"}
    return FileFinding(**{**given, "place": "graph, node 'a'", "help": "cast it", **fields})


def result(*findings: FileFinding) -> ModelResult:
    return ModelResult(findings[0].file if findings else "a.onnx", not findings, findings, {})


def sarif_of(capsys: pytest.CaptureFixture[str], *results: ModelResult) -> dict[str, Any]:
    with SarifWriter("plan") as writer:
        for each in results:
            writer.add(each)
    return read_run(capsys.readouterr().out)


def test_document_without_findings(capsys: pytest.CaptureFixture[str]) -> None:
    run = sarif_of(capsys, result())
    assert run["results"] == []
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (True, 0)
    assert run["tool"]["driver"]["name"] == "opshift"
    assert run["automationDetails"]["id"] == "opshift/plan/"


def test_result_has_rule_level_location_and_advice(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    run = sarif_of(capsys, result(finding(file="zoo/my model.onnx")))
    (found,) = run["results"]
    rule = run["tool"]["driver"]["rules"][found["ruleIndex"]]
    assert (rule["id"], rule["defaultConfiguration"]) == ("type.unsupported", {"level": "error"})
    assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
    assert rule["help"]["markdown"]
    assert found["level"] == "error"
    assert found["message"]["text"] == "graph, node 'a': lacks bfloat16\nhelp: cast it"
    (location,) = found["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {
        "uri": "zoo/my%20model.onnx",
        "uriBaseId": "%SRCROOT%",
    }
    assert location["logicalLocations"] == [{"fullyQualifiedName": "graph, node 'a'"}]
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{folder.as_uri()}/"
    assert run["invocations"][0]["exitCode"] == 1


def test_findings_of_one_rule_about_a_model_are_one_result(capsys: pytest.CaptureFixture[str]) -> None:
    places = [f"graph, node '{number}'" for number in range(150)]
    run = sarif_of(capsys, result(*(finding(place=each) for each in places), finding(rule="unknown.shape")))
    first, second = run["results"]
    assert (first["occurrenceCount"], len(first["locations"])) == (150, 100)
    assert "graph, node '9': lacks bfloat16\nand 140 more\nhelp: cast it" in first["message"]["text"]
    assert second["ruleId"] == "unknown.shape"
    assert first["partialFingerprints"] != second["partialFingerprints"]


def test_findings_in_text_files_have_lines(capsys: pytest.CaptureFixture[str]) -> None:
    found = [finding(rule="format.type", file="acme/x.yaml", line=line, message=str(line)) for line in (3, 9)]
    run = sarif_of(capsys, result(*found))
    regions = [each["locations"][0]["physicalLocation"]["region"] for each in run["results"]]
    assert regions == [{"startLine": 3}, {"startLine": 9}]


def test_fingerprints_are_stable(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [sarif_of(capsys, result(finding()), result(finding(file="b.onnx"))) for _ in range(2)]
    first, second = ([each["partialFingerprints"] for each in run["results"]] for run in runs)
    assert first == second
    assert first[0] != first[1]


def test_equal_findings_in_several_lines(capsys: pytest.CaptureFixture[str]) -> None:
    run = sarif_of(capsys, result(*(finding(file="x.yaml", line=line, message="\udcff") for line in (4, 9))))
    lines = [each["locations"][0]["physicalLocation"]["region"]["startLine"] for each in run["results"]]
    assert lines == [4, 9]
    assert len({each["partialFingerprints"]["opshiftFinding/v1"] for each in run["results"]}) == 2


@pytest.mark.skipif(os.name == "nt", reason="Windows has no root of all files")
def test_root_as_working_folder(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    run = sarif_of(capsys, result(finding(file="zoo/a.onnx")))
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == "file:///"
    location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "zoo/a.onnx", "uriBaseId": "%SRCROOT%"}


def test_fingerprint_ignores_moved_line(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = (sarif_of(capsys, result(finding(line=line)))["results"] for line in (4, 7))
    assert before[0]["partialFingerprints"] == after[0]["partialFingerprints"]


def test_hostile_names(capsys: pytest.CaptureFixture[str]) -> None:
    run = sarif_of(
        capsys, result(finding(message=HOSTILE, place=HOSTILE, file=f"{HOSTILE}.onnx", help=HOSTILE))
    )
    (found,) = run["results"]
    assert "](" not in found["message"]["text"]  # would be a link
    assert "{{0}}" in found["message"]["text"]  # would be a placeholder
    location = found["locations"][0]
    assert location["logicalLocations"] == [{"fullyQualifiedName": displayable(HOSTILE)}]
    assert unquote(location["physicalLocation"]["artifactLocation"]["uri"]) == f"{HOSTILE}.onnx"


@pytest.mark.skipif(os.name == "nt", reason="file names are Unicode")
def test_file_name_that_is_not_utf8(capsys: pytest.CaptureFixture[str]) -> None:
    name = os.fsdecode(b"\xff.onnx")
    run = sarif_of(capsys, result(finding(file=name, message=f"{name}: cannot be read")))
    (found,) = run["results"]
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "%FF.onnx"
    assert found["message"]["text"].encode("utf-8")


def test_file_outside_of_working_folder(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    outside = folder.parent / "x.onnx"
    run = sarif_of(capsys, result(finding(file="../x.onnx")))
    location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": outside.as_uri()}


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("s3://zoo/a b.onnx", "s3://zoo/a%20b.onnx"),
        ("memory://zoo/[x]#1.onnx", "memory://zoo/%5Bx%5D%231.onnx"),
        ("https://example.com/a%20b.onnx?v=1", "https://example.com/a%20b.onnx?v=1"),
    ],
)
def test_url(capsys: pytest.CaptureFixture[str], file: str, uri: str) -> None:
    run = sarif_of(capsys, result(finding(file=file)))
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": uri}


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        (
            PureWindowsPath(r"C:\work\zoo\ä b.onnx"),
            PureWindowsPath(r"c:\work"),
            {"uri": "zoo/%C3%A4%20b.onnx", "uriBaseId": "%SRCROOT%"},
        ),
        (PureWindowsPath(r"D:\a.onnx"), PureWindowsPath(r"C:\work"), {"uri": "file:///D:/a.onnx"}),
        (
            PureWindowsPath(r"\\host\zoo\a.onnx"),
            PureWindowsPath(r"C:\work"),
            {"uri": "file://host/zoo/a.onnx"},
        ),
        (
            PurePosixPath("/models/a:b.onnx"),
            PurePosixPath("/models"),
            {"uri": "a%3Ab.onnx", "uriBaseId": "%SRCROOT%"},
        ),
        (PurePosixPath("/models2/a.onnx"), PurePosixPath("/models"), {"uri": "file:///models2/a.onnx"}),
    ],
)
def test_paths_of_other_systems(path: Any, root: Any, expected: dict[str, str]) -> None:
    assert path_location(path, root) == expected


def test_unknown_rule_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    run = sarif_of(capsys, result(finding(rule="InvalidModel")), result(finding(rule="acme.own")))
    assert [each["id"] for each in run["tool"]["driver"]["rules"][-2:]] == ["InvalidModel", "acme.own"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeyboardInterrupt(), "The run did not complete; findings may be missing."),
        (SystemExit(143), "The run did not complete; findings may be missing."),
        (
            UsageError("file does not exist", place="b.onnx"),
            "The run did not complete: b.onnx: file does not exist",
        ),
    ],
)
def test_interrupted_document_is_valid(
    capsys: pytest.CaptureFixture[str], error: BaseException, message: str
) -> None:
    with pytest.raises(type(error)), SarifWriter("check") as writer:  # noqa: PT012
        writer.add(result(finding()))
        raise error
    run = read_run(capsys.readouterr().out)
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    (notification,) = invocation["toolExecutionNotifications"]
    assert (notification["level"], notification["message"]["text"]) == ("error", message)
    assert len(run["results"]) == 1


@pytest.mark.parametrize("is_complete", [True, False])
def test_interrupted_file_is_complete_or_absent(tmp_path: Path, *, is_complete: bool) -> None:
    path = tmp_path / "out.sarif"
    with pytest.raises(KeyboardInterrupt), open_sarif(path, "check") as writer:  # noqa: PT012
        writer.begin()
        if is_complete:
            writer.end(interrupted=True)
        raise KeyboardInterrupt
    assert [each.name for each in tmp_path.iterdir()] == (["out.sarif"] if is_complete else [])
    if is_complete:
        assert not read_run(path.read_text("utf-8"))["invocations"][0]["executionSuccessful"]


def test_results_above_limit_are_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "MAX_RESULTS", 3)
    run = sarif_of(capsys, *(result(finding(file=f"{number}.onnx")) for number in range(5)))
    assert len(run["results"]) == 3
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"] == "2 results are omitted: code hosts accept 3 in one run."
    assert run["invocations"][0]["executionSuccessful"]


def test_results_are_written_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with SarifWriter("plan") as writer:
        for number in range(3):
            capsys.readouterr()
            writer.add(result(finding(file=f"{number}.onnx")))
            line = capsys.readouterr().out.strip(",\n")
            assert json.loads(line)["ruleId"] == "type.unsupported"
