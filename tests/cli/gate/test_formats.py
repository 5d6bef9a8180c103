"""Commands over models with findings as SARIF, annotations and Code Quality reports."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import helper
from support.sarif import read_run
from support.unmeasured import unmeasured
from typer.testing import Result

from opshift.cli.findings.finding import FindingsWriter

Run = Callable[..., Result]

COMMANDS = {
    "check": ("check",),
    "check with a target": ("check", "--target", "5"),
    "plan": ("plan", "--target", "5"),
    "doctor": ("doctor",),
    "reach": ("reach",),
}


@pytest.fixture
def zoo(old_model: Path, new_model: Path) -> Path:
    """Write a folder with an old model, a new one, one of a wrong opset, and a file that is not a model."""
    zoo = old_model.parent / "zoo"
    (zoo / "broken").mkdir(parents=True)
    old_model.rename(zoo / "old.onnx")
    wrong = onnx.load(new_model)
    wrong.graph.node.append(helper.make_node("Mish", ["y"], ["z"], name="mish"))
    wrong.opset_import[0].version = 13
    onnx.save(wrong, zoo / "wrong.onnx")
    new_model.rename(zoo / "new.onnx")
    (zoo / "broken" / "text, 100%.onnx").write_text("junk", encoding="utf-8")
    return zoo


def rules_by_file(run: dict[str, Any]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in run["results"]:
        location = each["locations"][0]["physicalLocation"]["artifactLocation"]
        assert location["uriBaseId"] == "%SRCROOT%"
        found.setdefault(location["uri"], set()).add(each["ruleId"])
    return found


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ("plan", "--target", "5"),
            {
                "zoo/new.onnx": {"operator.no-equivalent"},
                "zoo/broken/text%2C%20100%25.onnx": {"InvalidModel"},
            },
        ),
        (
            ("doctor",),
            {
                "zoo/wrong.onnx": {"declared.opset", "declared.node"},
                "zoo/broken/text%2C%20100%25.onnx": {"InvalidModel"},
            },
        ),
        (
            ("check",),
            {"zoo/wrong.onnx": {"node.operator"}, "zoo/broken/text%2C%20100%25.onnx": {"model.readable"}},
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_folder_as_sarif(
    run: Run, zoo: Path, arguments: tuple[str, ...], expected: dict[str, set[str]]
) -> None:
    result = run(arguments[0], "zoo", *arguments[1:], "--format", "sarif")
    assert result.exit_code == 1
    found = read_run(result.stdout)
    by_file = rules_by_file(found)
    assert {file: by_file.get(file, set()) & rules for file, rules in expected.items()} == expected
    assert (found["invocations"][0]["executionSuccessful"], found["invocations"][0]["exitCode"]) == (True, 1)
    assert found["automationDetails"]["id"] == f"opshift/{arguments[0]}/"


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_every_command_prints_every_format(run: Run, zoo: Path, arguments: tuple[str, ...]) -> None:
    for file in ("zoo/new.onnx", "zoo"):
        results = {
            form: run(arguments[0], file, *arguments[1:], "--format", form)
            for form in ("json", "sarif", "github", "gitlab")
        }
        assert len({each.exit_code for each in results.values()}) == 1
        levels = [each["level"] for each in read_run(results["sarif"].stdout)["results"]]
        annotations = results["github"].stdout.splitlines()
        assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in annotations)
        issues = json.loads(results["gitlab"].stdout)
        assert bool(levels) == bool(annotations) == bool(issues)


def test_rules_of_several_commands_are_described(run: Run, zoo: Path) -> None:
    found = read_run(run("doctor", "zoo", "--target", "5", "--format", "sarif").stdout)
    rules = {each["id"]: each["shortDescription"]["text"] for each in found["tool"]["driver"]["rules"]}
    assert rules["declared.opset"] == "The nodes are invalid at the declared opset."
    assert rules["operator.no-equivalent"] == "The target has no equivalent of the operator."


def test_model_on_standard_input(zoo: Path) -> None:
    command = [sys.executable, "-m", "opshift", "check", "-", "--format", "sarif"]
    with (zoo / "wrong.onnx").open("rb") as model:
        done = subprocess.run(command, stdin=model, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    found = read_run(done.stdout.decode())
    assert "node.operator" in rules_by_file(found)["%3Cstdin%3E"]


@pytest.mark.parametrize("form", ["sarif", "github", "gitlab"])
def test_missing_file_is_wrong_usage(run: Run, folder: Path, form: str) -> None:
    result = run("plan", "nothing.onnx", "--target", "17", "--format", form)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "nothing.onnx: file does not exist" in result.stderr


def test_corrected_model_has_no_findings(run: Run, zoo: Path) -> None:
    result = run("doctor", "zoo/wrong.onnx", "fixed.onnx", "--fix", "--format", "sarif")
    assert (result.exit_code, result.stdout) == (2, "")
    assert not Path("fixed.onnx").exists()


@pytest.mark.some_cases(1)
@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_is_valid_sarif(zoo: Path, number: signal.Signals) -> None:
    # the list does not end, so that the command waits for it
    command = [sys.executable, "-m", "opshift", "check", "--files-from", "-", "--format", "sarif"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=unmeasured()) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(f"{zoo / 'wrong.onnx'}\n")
        process.stdin.flush()
        lines = [process.stdout.readline(), process.stdout.readline()]
        process.send_signal(number)
        text = "".join((*lines, process.stdout.read()))
        process.stdin.close()
    assert process.returncode == 128 + number
    found = read_run(text)
    assert found["results"]
    (invocation,) = found["invocations"]
    assert not invocation["executionSuccessful"]
    assert invocation["toolExecutionNotifications"][0]["descriptor"]["id"] == "run.interrupted"


@pytest.mark.parametrize("file", ["zoo", "zoo/new.onnx"])
def test_sarif_file_beside_other_formats(run: Run, zoo: Path, file: str) -> None:
    texts = []
    for form in ("text", "json", "github", "sarif"):
        result = run("plan", file, "--target", "5", "--format", form, "--sarif", f"{form}.sarif")
        assert result.exit_code == 1
        assert result.stdout
        texts.append(Path(f"{form}.sarif").read_text("utf-8"))
    assert read_run(texts[0])["results"]
    assert len(set(texts)) == 1
    assert texts[0] == result.stdout


SINGLE = {
    "text": ("zoo/old.onnx", "text"),
    "json": ("zoo/old.onnx", "json"),
    "refused": ("zoo/new.onnx", "text"),
    "broken": ("zoo/broken/text, 100%.onnx", "json"),
}


@pytest.mark.parametrize(("file", "form"), SINGLE.values(), ids=SINGLE)
def test_sarif_file_leaves_the_output_of_one_model(run: Run, zoo: Path, file: str, form: str) -> None:
    command = ("plan", file, "--target", "5", "--format", form, "--report", "report.md")
    alone, result = run(*command), run(*command, "--sarif", "x.sarif")
    assert (result.exit_code, result.output) == (alone.exit_code, alone.output)
    found = read_run(Path("x.sarif").read_text("utf-8"))
    assert found["invocations"][0]["exitCode"] == result.exit_code
    assert bool(found["results"]) == (result.exit_code == 1)


@pytest.mark.parametrize("name", ["zoo/new.onnx", "report"])
def test_refuses_sarif_file_of_another_name(run: Run, zoo: Path, name: str) -> None:
    before = (zoo / "new.onnx").read_bytes()
    result = run("check", "zoo", "--format", "sarif", "--sarif", name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"--sarif {name}: does not end in .sarif or .json" in result.stderr
    assert (zoo / "new.onnx").read_bytes() == before


def test_sarif_file_in_missing_folder(run: Run, zoo: Path) -> None:
    run("check", "zoo", "--sarif", "none/x.sarif")
    assert read_run(Path("none/x.sarif").read_text("utf-8"))["results"] is not None


UNWRITABLE: list[tuple[str, str, int, str]] = [
    ("file as a folder", "zoo/new.onnx/f", 1, "zoo/new.onnx/f{}: cannot be written: "),
    ("URL", "s3://bucket/f", 2, "it is a URL: give the path of a local file or folder"),
]


@pytest.mark.parametrize(
    ("place", "code", "message"), [row[1:] for row in UNWRITABLE], ids=[row[0] for row in UNWRITABLE]
)
@pytest.mark.parametrize(("option", "suffix"), [("--sarif", ".sarif"), ("--report", ".html")])
def test_reports_a_file_that_cannot_be_written(
    run: Run, zoo: Path, option: str, suffix: str, place: str, code: int, message: str
) -> None:
    command = ("plan", "zoo/old.onnx", "-t", "17", option, f"{place}{suffix}")
    result = run(*command)
    assert result.exit_code == code
    assert message.format(suffix) in result.stderr
    data = json.loads(run(*command, "--format", "json").stdout)
    assert data["error"] in (["CannotWrite"] if code == 1 else ["UsageError", "BadParameter"])
    assert not Path("s3:").exists()


def test_full_disk_names_the_sarif_file(run: Run, zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(writer: FindingsWriter, text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(FindingsWriter, "write", fail)
    result = run("check", "zoo", "--sarif", "x.sarif")
    assert (result.exit_code, Path("x.sarif").exists()) == (1, False)
    assert "error: x.sarif: cannot be written: No space left on device" in result.stderr


def test_dry_run_has_findings_of_plan(run: Run, zoo: Path) -> None:
    results = [
        run(*command, "zoo", "--target", "5", "--format", "sarif")
        for command in (("convert", "--dry-run"), ("plan",))
    ]
    assert [each.exit_code for each in results] == [1, 1]
    assert results[0].stdout == results[1].stdout
    assert read_run(results[0].stdout)["results"]


@pytest.mark.parametrize("arguments", [("out.onnx",), ("--out", "out")])
def test_conversion_has_no_findings(run: Run, zoo: Path, arguments: tuple[str, ...]) -> None:
    result = run("convert", "zoo/old.onnx", *arguments, "--target", "17", "--format", "sarif")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--format sarif: requires --dry-run" in result.stderr
    assert not Path(arguments[-1]).exists()
