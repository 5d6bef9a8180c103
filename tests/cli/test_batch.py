"""`opshift convert ... --out`: several models, one summary, and no failure that stops the others."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from typer.testing import Result

from opshift.cli.conversion import convert_file

Run = Callable[..., Result]


@pytest.fixture
def models(old_model: Path, new_model: Path) -> Path:
    """`bad.onnx` is no model, `new.onnx` cannot go to 6; `old.onnx` and all in `in` can go anywhere."""
    Path("in/b").mkdir(parents=True)
    shutil.copy("old.onnx", "in/a.onnx")
    shutil.copy("old.onnx", "in/b/c.onnx")
    Path("in/read.me").write_text("no model")
    Path("bad.onnx").write_bytes(b"\xff" * 9)
    return old_model.parent


def written(folder: str = "out") -> list[str]:
    """The files in a folder, however deep."""
    return sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file())


def opsets(folder: str = "out") -> set[int]:
    return {int(onnx.load(path).opset_import[0].version) for path in Path(folder).rglob("*.onnx")}


WAYS = {
    "two files": (["old.onnx", "new.onnx"], ["new.onnx", "old.onnx"]),
    "one file": (["old.onnx"], ["old.onnx"]),
    "a folder keeps its folders": (["in"], ["a.onnx", "b/c.onnx"]),
    "files and folders": (["old.onnx", "in/b"], ["c.onnx", "old.onnx"]),
}


@pytest.mark.parametrize(("sources", "expected"), WAYS.values(), ids=WAYS)
@pytest.mark.usefixtures("models")
def test_all_are_converted(run: Run, sources: list[str], expected: list[str]) -> None:
    result = run("convert", *sources, "--out", "out", "-t", "19")
    assert (result.exit_code, result.stderr) == (0, "")
    assert written() == expected
    assert opsets() == {19}
    assert f"{len(expected)} model" in result.stdout
    assert " converted, 0 failed" in result.stdout


@pytest.mark.usefixtures("models")
def test_the_summary_is_a_row_for_each(run: Run) -> None:
    result = run("convert", "old.onnx", "new.onnx", "bad.onnx", "-o", "out", "-t", "6")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == "model opsets kept changed result"
    assert lines[1] == "old.onnx ai.onnx 10 -> 6 3 0 out/old.onnx"
    assert lines[2].startswith("new.onnx failed: ai.onnx.Sin:7: no operator of opset 6 computes")
    assert lines[3].startswith("bad.onnx failed: is not an ONNX model")
    assert lines[-1] == "1 model converted, 2 failed"


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.usefixtures("models")
def test_a_failure_does_not_stop_the_others_and_all_are_listed_in_order(run: Run, jobs: str) -> None:
    result = run(
        "convert", "bad.onnx", "new.onnx", "old.onnx", "-o", "out", "-t", "6", "-j", jobs, "--format", "json"
    )
    data = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (1, "")
    assert (data["output"], data["converted"], data["failed"]) == ("out", 1, 2)
    assert [each["input"] for each in data["files"]] == ["bad.onnx", "new.onnx", "old.onnx"]
    assert [each["output"] for each in data["files"]] == [None, None, "out/old.onnx"]
    assert [each.get("error") for each in data["files"]] == ["InvalidModel", "ConversionRefused", None]
    assert len(data["files"][1]["refusals"]) == 2


@pytest.mark.usefixtures("models")
def test_quiet_tells_of_failures_only(run: Run) -> None:
    fine = run("convert", "old.onnx", "-o", "out", "-t", "17", "--quiet")
    assert (fine.exit_code, fine.output) == (0, "")
    failed = run("convert", "bad.onnx", "in/a.onnx", "-o", "out", "-t", "17", "--quiet")
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "bad.onnx  is not an ONNX model" in failed.stderr
    assert "a.onnx  " not in failed.stderr


WRONG = {
    "the same names": (
        ["old.onnx", "in/b", "in/b/c.onnx"],
        "in/b/c.onnx and in/b/c.onnx have the same output file",
    ),
    "the same names in two folders": (
        ["in", "copy"],
        "in/a.onnx and copy/a.onnx have the same output file",
    ),
    "an input that is not there": (["old.onnx", "no.onnx"], "no.onnx: file does not exist"),
    "a folder without models": (["old.onnx", "empty"], "empty: contains no *.onnx files"),
    "--in-place": (["old.onnx", "--in-place"], "both --out and --in-place are given"),
    "no processes": (["old.onnx", "--jobs", "0"], "--jobs"),
    "inputs without comparing": (["old.onnx", "--inputs", "x.npz"], "require --verify"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
@pytest.mark.usefixtures("models")
def test_wrong_usage_writes_nothing(run: Run, arguments: list[str], message: str) -> None:
    Path("empty").mkdir()
    shutil.copytree("in", "copy")
    result = run("convert", *arguments, "--out", "out", "-t", "17")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert not Path("out").exists()


def test_several_without_a_folder_are_refused(run: Run, models: Path) -> None:
    result = run("convert", "old.onnx", "new.onnx", "in/a.onnx", "-t", "17")
    assert result.exit_code == 2
    assert "several models require an output folder" in result.stderr
    assert "--out" in result.stderr


def test_what_is_there_is_replaced_by_force_only(run: Run, models: Path) -> None:
    Path("out").mkdir()
    Path("out/old.onnx").write_bytes(b"mine")
    refused = run("convert", "in/a.onnx", "old.onnx", "-o", "out", "-t", "17")
    assert refused.exit_code == 2
    assert "out/old.onnx: already exists" in refused.stderr
    assert written() == ["old.onnx"]
    assert Path("out/old.onnx").read_bytes() == b"mine"
    assert run("convert", "in/a.onnx", "old.onnx", "-o", "out", "-t", "17", "--force").exit_code == 0
    assert opsets() == {17}


@pytest.mark.parametrize(
    ("sources", "into", "message"),
    [
        pytest.param(["old.onnx"], ".", "old.onnx: is the input file", id="into its own folder"),
        pytest.param(["in"], "in", "a.onnx: is the input file", id="a folder into itself"),
        pytest.param(["in", "out/a.onnx"], "out", "out/a.onnx", id="over another input"),
        pytest.param(["old.onnx"], "bad.onnx", "bad.onnx: is not a folder", id="into a file"),
    ],
)
def test_no_input_is_overwritten(run: Run, models: Path, sources: list[str], into: str, message: str) -> None:
    Path("out").mkdir()
    shutil.copy("old.onnx", "out/a.onnx")
    before = {path: path.read_bytes() for path in models.rglob("*.onnx")}
    result = run("convert", *sources, "--out", into, "-t", "17", "--force")
    assert result.exit_code == 2
    assert message in result.stderr
    assert {path: path.read_bytes() for path in models.rglob("*.onnx")} == before


def test_results_within_the_folder_are_no_inputs(run: Run, models: Path) -> None:
    for _ in range(2):
        assert run("convert", "in", "--out", "in/17", "-t", "17", "--force").exit_code == 0
    assert written("in/17") == ["a.onnx", "b/c.onnx"]


def test_a_folder_goes_to_the_one_around_it(run: Run, models: Path) -> None:
    assert run("convert", "in/b", "--out", "in", "-t", "17").exit_code == 0
    assert written("in") == ["a.onnx", "b/c.onnx", "c.onnx", "read.me"]


def test_weights_to_copy_are_named(run: Run, models: Path) -> None:
    onnx.save(onnx.load("old.onnx"), "w.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    result = run("convert", "w.onnx", "--out", "out", "-t", "17", "--external", "keep")
    assert "out/w.onnx has weights in separate files: copy w.bin to its folder." in result.stdout


def test_models_may_share_weights(run: Run, models: Path) -> None:
    onnx.save(onnx.load("old.onnx"), "w.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    shutil.copy("w.onnx", "v.onnx")
    result = run("convert", "v.onnx", "w.onnx", "--out", "out", "-t", "17")
    assert result.exit_code == 0
    assert written() == ["v.onnx", "w.bin", "w.onnx"]
    assert Path("out/w.bin").read_bytes() == Path("w.bin").read_bytes()


def test_all_are_compared(run: Run, models: Path) -> None:
    result = run("convert", "in", "--out", "out", "-t", "17", "--verify")
    assert result.exit_code == 0
    assert "out/a.onnx, equal" in result.stdout


def test_a_bug_in_one_does_not_stop_the_others(
    run: Run, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(source: Path, *rest: object, **options: object) -> object:
        if source.name == "a.onnx":
            raise AssertionError("impossible")
        return convert_file(source, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("opshift.cli.batch.convert_file", failing)
    result = run("convert", "in", "--out", "out", "-t", "17")
    assert result.exit_code == 1
    assert "failed: AssertionError: impossible" in result.stdout
    assert written() == ["b/c.onnx"]


def test_a_full_disk(run: Run, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    result = run("convert", "in", "--out", "out", "-t", "17")
    assert result.exit_code == 1
    assert result.stdout.count("No space left on device") == 2
    assert written() == []
