"""Code Quality reports of GitLab."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opshift.cli.findings.finding import FileFinding
from opshift.cli.findings.formats import GitlabWriter


def test_report(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    found = [
        FileFinding(
            "type.unsupported", "error", "lacks bfloat16", "zoo/ä.onnx", "graph, node 'a'", "cast it"
        ),
        FileFinding("type.unsupported", "warning", "lacks bfloat16", "zoo/ä.onnx", "graph, node 'b'"),
        FileFinding("format.type", "note", "is not a number", str(folder / "x.yaml"), "", line=4),
        FileFinding("unknown.shape", "error", "needs a shape", "s3://zoo/a.onnx", ""),
    ]
    with GitlabWriter("plan") as writer:
        writer.add_all(found)
    first, second, third, last = issues = json.loads(capsys.readouterr().out)
    assert first["description"] == "graph, node 'a': lacks bfloat16 (cast it)"
    assert first["check_name"] == "type.unsupported"
    assert first["location"] == {"path": "zoo/ä.onnx", "lines": {"begin": 1}}
    assert third["location"] == {"path": "x.yaml", "lines": {"begin": 4}}
    assert last["location"]["path"] == "s3://zoo/a.onnx"
    assert [each["severity"] for each in issues] == ["major", "minor", "info", "major"]
    assert len({each["fingerprint"] for each in issues}) == 4
    assert second["description"] == "graph, node 'b': lacks bfloat16"


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_report_without_findings_is_valid(capsys: pytest.CaptureFixture[str], is_interrupted: bool) -> None:
    writer = GitlabWriter("plan")
    writer.begin()
    writer.end(interrupted=is_interrupted)
    assert json.loads(capsys.readouterr().out) == []
