"""Wrong usage: exit code 2, a message and a remedy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

Run = Callable[..., Result]

WRONG_USAGE = {
    "no command": ([], "Usage: opshift"),
    "unknown command": (["konvert"], "Did you mean 'convert'?"),
    "unknown option": (["list", "--nope"], "No such option"),
    "unknown format": (["list", "--format", "xml"], "xml"),
    "opset that is not a number": (["list", "--opset", "x"], "--opset"),
    "no input": (["convert"], "IN is not given"),
    "no target": (["convert", "old.onnx", "out.onnx"], "no target is given"),
    "no output": (["convert", "old.onnx", "-t", "17"], "OUT is not given"),
    "output and --in-place": (["convert", "old.onnx", "o.onnx", "--in-place", "-t", "17"], "both OUT and"),
    "missing input": (
        ["convert", "no.onnx", "out.onnx", "-t", "17"],
        "no.onnx: file does not exist",
    ),
    "folder as input": (["inspect", "."], "is a folder"),
    "folders as input and output": (["convert", ".", "new", "-t", "17"], "with --out new"),
    "folder as output": (["convert", "old.onnx", "sub", "-t", "17"], "such as sub/old.onnx"),
    "empty input": (["plan", "old.onnx", "", "-t", "17"], "'IN...': the path is empty"),
    "empty output": (["convert", "old.onnx", "", "-t", "17"], "the path is empty"),
    "empty output folder": (["convert", "old.onnx", "--out", "", "-t", "17"], "'-o': the path is empty"),
    "empty ledger": (["check", "old.onnx", "--ledger", ""], "'--ledger': the path is empty"),
    "empty report": (["plan", "old.onnx", "-t", "17", "--report", ""], "'--report': the path is empty"),
    "output in a missing folder": (
        ["convert", "old.onnx", "no/out.onnx", "-t", "17"],
        "the folder of OUT does not exist",
    ),
    "missing folder as output": (["convert", "old.onnx", "no/", "-t", "17"], "create no, and name a file"),
    "output that is a circular link": (
        ["convert", "old.onnx", "loop", "-t", "17"],
        "symbolic link that cannot be resolved",
    ),
    "target 0": (["convert", "old.onnx", "out.onnx", "-t", "0"], "there is no opset 0 of ai.onnx"),
    "target -1": (["convert", "old.onnx", "out.onnx", "-t", "-1"], "there is no opset -1 of ai.onnx"),
    "target 99": (["convert", "old.onnx", "out.onnx", "-t", "99"], "there is no opset 99 of ai.onnx"),
    "plan for target 99": (["plan", "old.onnx", "-t", "99"], "there is no opset 99 of ai.onnx"),
    "invalid target": (["convert", "old.onnx", "out.onnx", "-t", "newest"], "onnx-1.12"),
    "empty target": (["convert", "old.onnx", "out.onnx", "-t", ""], "onnx-1.12"),
    "unknown release": (
        ["convert", "old.onnx", "out.onnx", "-t", "onnx-0.9"],
        "unknown version '0.9' of onnx",
    ),
    "release without a version": (
        ["convert", "old.onnx", "out.onnx", "-t", "onnxruntime"],
        "'onnxruntime' has no version",
    ),
    "unknown domain": (["convert", "old.onnx", "out.onnx", "-t", "com.acme=1"], "domain 'com.acme'"),
    "two targets": (
        ["convert", "old.onnx", "o.onnx", "-t", "17", "-t", "18"],
        "two opsets are requested for ai.onnx",
    ),
    "unknown allow value": (
        ["plan", "old.onnx", "-t", "17", "--allow", "magic"],
        "unknown allow value 'magic'",
    ),
    "missing definitions": (["list", "--opsets", "no"], "no: does not exist"),
    "invalid operator name": (["show", "Conv:eleven"], "invalid operator name 'Conv:eleven'"),
    "name contradicts --domain": (
        ["show", "ai.onnx.Conv", "-d", "ai.onnx.ml"],
        "contradicts --domain ai.onnx.ml",
    ),
    "name contradicts --opset": (["resolve", "Conv:11", "--opset", "12"], "contradicts --opset 12"),
    "unknown opset": (["show", "Conv", "--opset", "99"], "there is no opset 99 of ai.onnx"),
    "unknown opset of a list": (["list", "--changed", "13", "99"], "there is no opset 99 of ai.onnx"),
    "unknown opset of stubs": (["stubs", "--opset", "99"], "there is no opset 99 of ai.onnx"),
    "unknown opset of a document": (
        ["opset", "export", "-d", "ai.onnx", "--version", "99"],
        "there is no opset 99 of ai.onnx",
    ),
    "unknown opset to compare": (["diff", "Conv", "1", "99"], "there is no opset 99 of ai.onnx"),
    "opset 0 of a node": (["node", "Relu(x)", "--opset", "0", "-t", "13"], "there is no opset 0 of ai.onnx"),
    "unknown operator": (["show", "Cnov"], "did you mean Conv?"),
    "unknown operator of a runtime": (["runtimes", "tract-0.23.9", "Cnov"], "did you mean Conv?"),
    "missing folder of a proposal": (["proposal", "check", "no"], "no: folder does not exist"),
    "domain without definitions": (["list", "-d", "com.acme"], "no definitions for domain 'com.acme'"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG_USAGE.values(), ids=list(WRONG_USAGE))
def test_refuses_wrong_usage(run: Run, old_model: Path, arguments: list[str], message: str) -> None:
    Path("sub").mkdir()
    Path("loop").symlink_to("loop")
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert sorted(os.listdir()) == ["loop", "old.onnx", "sub"]
    if arguments:
        assert result.stdout == ""
        assert "error: " in result.stderr
        assert "\n  help: " in result.stderr


@pytest.mark.parametrize(
    "name", [name for name, (arguments, _) in WRONG_USAGE.items() if "--format" not in arguments]
)
def test_prints_wrong_usage_as_json(run: Run, old_model: Path, name: str) -> None:
    Path("sub").mkdir()
    Path("loop").symlink_to("loop")
    result = run(*WRONG_USAGE[name][0], "--format", "json")
    error = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (2, "")
    assert set(error) == {"error", "reason", "place", "remedy", "refusals"}
    assert error["reason"]
    assert error["refusals"] == []


def test_json_names_type_of_error(run: Run, old_model: Path) -> None:
    result = run("plan", "old.onnx", "-t", "99", "--format=json")
    assert json.loads(result.stdout)["error"] == "UnknownOpset"


@pytest.mark.parametrize("functions", [["open"], ["open", "stat"]])
def test_reports_unreadable_input(
    run: Run, old_model: Path, monkeypatch: pytest.MonkeyPatch, functions: list[str]
) -> None:
    for name in functions:
        call = getattr(os, name)

        def refuse(path: Any, *arguments: int, call: Any = call, **options: Any) -> Any:
            if str(path).endswith("old.onnx"):
                raise PermissionError(13, "Permission denied", str(path))
            return call(path, *arguments, **options)

        monkeypatch.setattr(os, name, refuse)
    result = run("reach", "old.onnx")
    assert result.exit_code == 1
    assert "old.onnx: cannot be read: Permission denied" in result.stderr


def test_reports_full_disk(run: Run, old_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", refuse)
    result = run("convert", "old.onnx", "out.onnx", "-t", "17")
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr
    assert "out.onnx" in result.stderr
    assert os.listdir() == ["old.onnx"]


COMMANDS = ["convert", "plan", "reach", "compare", "inspect", "show", "list", "resolve", "targets"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"opshift {command}" in result.stdout.partition("Examples:")[2]


def test_help_summarizes_every_command_in_one_line(run: Run) -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "..." not in result.stdout.partition("Models:")[2]


@pytest.mark.parametrize(
    "command",
    [
        "site https://example.com/out",
        "stubs https://example.com/out.py",
        "opset export https://example.com/out.yaml --domain ai.onnx",
        "proposal new s3://bucket/folder --kind new-operator --name Twice",
        "plan model.onnx --target 17 --report https://example.com/report.html",
    ],
)
def test_local_results_are_not_written_to_urls(run: Run, command: str) -> None:
    result = run(*command.split())
    assert result.exit_code == 2
    assert "it is a URL: give the path of a local file or folder" in " ".join(result.stderr.split())
    assert not os.listdir()
