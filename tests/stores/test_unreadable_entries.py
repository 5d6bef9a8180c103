"""Entries of folders and lists that cannot be examined: they fail alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.small_models import save
from typer.testing import CliRunner

import opshift
from opshift.cli.main import app
from opshift.model.errors import UsageError
from opshift.stores.find_models import find_models

SCAN = os.scandir


def forbid(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder unreadable, also for root."""

    def scan(path: str) -> Any:
        if str(path) == str(folder):
            raise PermissionError(13, "Permission denied", str(path))
        return SCAN(path)

    monkeypatch.setattr(os, "scandir", scan)


def cycle(folder: Path, _: pytest.MonkeyPatch) -> None:
    (folder / "k").symlink_to("k")


def cycle_of_two(folder: Path, _: pytest.MonkeyPatch) -> None:
    (folder / "k").symlink_to("l.txt")
    (folder / "l.txt").symlink_to("k")


def forbidden(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(folder / "k" / "in.onnx")
    forbid(folder / "k", monkeypatch)


def forbidden_below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(folder / "k" / "b.onnx")
    (folder / "k" / "sub").mkdir()
    forbid(folder / "k" / "sub", monkeypatch)


Entry = Callable[[Path, pytest.MonkeyPatch], None]

# what makes the entry, the unreadable entries, and the reason
ENTRIES: dict[str, tuple[Entry, list[str], str]] = {
    "cycle": (cycle, ["k"], "cannot be read: Too many levels of symbolic links"),
    "cycle of two": (cycle_of_two, ["k", "l.txt"], "cannot be read: Too many levels of symbolic links"),
    "folder": (forbidden, ["k"], "cannot be listed: Permission denied"),
    "folder below": (forbidden_below, ["k/sub"], "cannot be listed: Permission denied"),
}


@pytest.fixture(params=list(ENTRIES.values()), ids=list(ENTRIES))
def entries(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, list[str], str]:
    """Return a folder with two readable models around an entry, the unreadable names, and the reason."""
    make, names, reason = request.param
    folder = tmp_path / "d"
    for name in ("a.onnx", "z.onnx"):
        save(folder / name)
    make(folder, monkeypatch)
    return folder, names, reason


@pytest.mark.parametrize("pattern", ["", "/**/*.onnx"], ids=["folder", "glob"])
def test_lists_the_entries_after_it(entries: tuple[Path, list[str], str], pattern: str) -> None:
    folder, names, reason = entries
    found = list(find_models([f"{folder}{pattern}"]))
    assert {each.relative: each.error.reason for each in found if each.error} == dict.fromkeys(names, reason)
    assert {"a.onnx", "z.onnx"} <= {each.relative for each in found if not each.error}


def test_globs_report_entries_that_they_may_match(entries: tuple[Path, list[str], str]) -> None:
    folder, _, _ = entries
    assert [each.relative for each in find_models([f"{folder}/*.onnx"])] == ["a.onnx", "z.onnx"]


def test_batches_go_on(entries: tuple[Path, list[str], str], tmp_path: Path) -> None:
    folder, names, reason = entries
    for _ in range(2):
        outcomes = {each.source: each for each in opshift.convert_many(folder, 17, tmp_path / "out")}
        for name in names:
            outcome = outcomes[str(folder / name)]
            assert outcome.status == "failed"
            assert outcome.error is not None
            assert outcome.error.reason == reason
        assert {each.status for each in outcomes.values()} <= {"failed", "converted", "skipped"}
        assert [each.status for each in outcomes.values()].count("failed") == len(names)
    assert (tmp_path / "out" / "z.onnx").is_file()


@pytest.mark.parametrize("options", [(), ("--ledger", "LEDGER")], ids=["plain", "ledger"])
@pytest.mark.parametrize("command", ["plan -t 17", "check"])
def test_commands_go_on(
    entries: tuple[Path, list[str], str], command: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    folder, names, reason = entries
    options = tuple(each.replace("LEDGER", str(tmp_path / "ledger")) for each in options)
    result = CliRunner().invoke(app, [*command.split(), str(folder), "--format", "json", *options])
    assert result.exit_code == 1, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    failed = {each["input"]: each["reason"] for each in lines if each.get("result") == "failed"}
    assert failed == {str(folder / name): reason for name in names}
    assert str(folder / "z.onnx") in {each.get("input") for each in lines}


def test_refuses_a_named_folder_that_cannot_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(tmp_path, monkeypatch)
    with pytest.raises(UsageError, match="cannot be listed: Permission denied"):
        list(find_models([str(tmp_path)]))


# a line of a list, and its error
LINES = {
    "missing bucket": ("s3://no-such-bucket/", "does not exist"),
    "missing folder": ("memory://nowhere/", "does not exist"),
    "unknown scheme": ("zz://h/", "is not a usable URL: Protocol not known: zz"),
    "store with arguments": ("jupyter://h/", "is not a usable URL: "),
    "forbidden folder": ("FOLDER", "cannot be listed: Permission denied"),
    "missing file": ("missing.onnx", "cannot be read: No such file or directory"),
    "long name": (f"{'n' * 300}.onnx", "cannot be read: File name too long"),
}


@pytest.mark.parametrize(("line", "reason"), LINES.values(), ids=LINES)
@pytest.mark.usefixtures("server", "memory")
def test_a_line_of_a_list_fails_alone(
    line: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, model = tmp_path / "forbidden", save(tmp_path / "m.onnx")
    folder.mkdir()
    forbid(folder, monkeypatch)
    line = line.replace("FOLDER", str(folder))
    (tmp_path / "list").write_text(f"{line}\n{model}\n")
    listed = ["--files-from", str(tmp_path / "list"), "-t", "17", "--format", "json"]
    for command in (["plan"], ["convert", "--out", str(tmp_path / "out")]):
        result = CliRunner().invoke(app, [*command, *listed])
        assert result.exit_code == 1, result.output
        lines = {each.get("input"): each for each in map(json.loads, result.stdout.splitlines())}
        assert lines[line]["result"] == "failed"
        assert lines[line]["reason"].startswith(reason)
        assert lines[str(model)]["result"] in ("convertible", "converted")
