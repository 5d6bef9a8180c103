"""`opshift convert ... --out`: several models, one summary, and independent failures."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from typer.testing import Result

from opshift.batch.ledger import LEDGER_NAME
from opshift.converter.convert import convert_with

Run = Callable[..., Result]


@pytest.fixture
def models(old_model: Path, new_model: Path) -> Path:
    """Write `bad.onnx`, which is invalid, `new.onnx`, which needs opset 7, `old.onnx` and a folder `in`."""
    Path("in/b").mkdir(parents=True)
    shutil.copy("old.onnx", "in/a.onnx")
    shutil.copy("old.onnx", "in/b/c.onnx")
    Path("in/read.me").write_text("no model")
    Path("bad.onnx").write_bytes(b"\xff" * 9)
    return old_model.parent


def files_in(folder: str = "out") -> list[str]:
    """Return all files in a folder and its subfolders, without ledgers."""
    found = (path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file())
    return sorted(path for path in found if not path.endswith(LEDGER_NAME))


def opsets(folder: str = "out") -> set[int]:
    return {int(onnx.load(path).opset_import[0].version) for path in Path(folder).rglob("*.onnx")}


SOURCES = {
    "two files": (["old.onnx", "new.onnx"], ["new.onnx", "old.onnx"]),
    "one file": (["old.onnx"], ["old.onnx"]),
    "folder with subfolder": (["in"], ["a.onnx", "b/c.onnx"]),
    "files and folders": (["old.onnx", "in/b"], ["c.onnx", "old.onnx"]),
}


@pytest.mark.parametrize(("sources", "expected"), SOURCES.values(), ids=SOURCES)
@pytest.mark.usefixtures("models")
def test_converts_all_models(run: Run, sources: list[str], expected: list[str]) -> None:
    result = run("convert", *sources, "--out", "out", "-t", "19")
    assert (result.exit_code, result.stderr) == (0, "")
    assert files_in() == expected
    assert opsets() == {19}
    assert f"{len(expected)} converted" in result.stdout


@pytest.mark.usefixtures("models")
def test_rows_causes_and_summary(run: Run) -> None:
    result = run("convert", "old.onnx", "new.onnx", "bad.onnx", "-o", "out", "-t", "6")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[:4] == [
        "result opsets changed model",
        "converted 10 -> 6 0 old.onnx",
        "refused new.onnx operator.no-equivalent (2)",
        "failed bad.onnx InvalidModel",
    ]
    assert "operator.no-equivalent: 1 model, 2 findings" in lines
    assert "InvalidModel: 1 model, 1 finding" in lines
    assert lines[-1].startswith("3 models: 1 refused, 1 failed, 1 converted (")


@pytest.mark.usefixtures("models")
def test_prints_a_folder_once_and_explains_links(run: Run) -> None:
    Path("in/gone.onnx").symlink_to("nowhere.onnx")
    result = run("convert", "in", "-o", "out", "-t", "17")
    rows = result.stdout.partition("Causes")[0].splitlines()
    assert [line.split()[-1] for line in rows[:1]] == ["in/"]
    assert "  gone.onnx: is a link to nowhere.onnx, which does not exist\n" in result.stdout
    assert "  help: restore that file, or remove the link\n" in result.stdout


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.usefixtures("models")
def test_failure_does_not_stop_others(run: Run, jobs: str) -> None:
    names = ["bad.onnx", "new.onnx", "old.onnx"]
    result = run("convert", *names, "-o", "out", "-t", "6", "-j", jobs, "--format", "json")
    *lines, last = map(json.loads, result.stdout.splitlines())
    assert (result.exit_code, result.stderr) == (1, "")
    assert last["summary"]["results"] == {"failed": 1, "refused": 1, "converted": 1}
    found = {each["input"]: each for each in lines}
    assert [found[name]["output"] for name in names] == [None, None, "out/old.onnx"]
    assert [found[name].get("error") for name in names] == ["InvalidModel", "ConversionRefused", None]
    assert [found[name]["result"] for name in names] == ["failed", "refused", "converted"]
    assert len(found["new.onnx"]["refusals"]) == 2
    assert found["old.onnx"]["kept"] == 3


@pytest.mark.usefixtures("models")
def test_second_run_does_nothing(run: Run) -> None:
    arguments = ("convert", "old.onnx", "new.onnx", "-o", "out", "-t", "6", "--format", "json")
    first, second = (run(*arguments) for _ in range(2))
    assert first.exit_code == second.exit_code == 1
    *lines, last = map(json.loads, second.stdout.splitlines())
    assert last["summary"]["results"] == {"skipped": 1, "refused": 1}
    assert all(each["from_ledger"] for each in lines)
    assert lines[1]["reason"] == json.loads(first.stdout.splitlines()[1])["reason"]


@pytest.mark.usefixtures("models")
def test_list_of_models_and_ledger(run: Run) -> None:
    Path("names").write_text("old.onnx\nin/a.onnx\n")
    result = run("convert", "--files-from", "names", "-o", "out", "-t", "17", "--ledger", "log.jsonl")
    assert result.exit_code == 0
    assert files_in() == ["in/a.onnx", "old.onnx"]
    assert sorted(os.listdir("out")) == ["in", "old.onnx"]
    assert len(Path("log.jsonl").read_text().splitlines()) == 2


@pytest.mark.usefixtures("models")
def test_quiet_reports_only_failures(run: Run) -> None:
    succeeded = run("convert", "old.onnx", "-o", "out", "-t", "17", "--quiet")
    assert (succeeded.exit_code, succeeded.output) == (0, "")
    failed = run("convert", "bad.onnx", "in/a.onnx", "-o", "out", "-t", "17", "--quiet")
    assert failed.exit_code == 1
    assert "bad.onnx: is not an ONNX model" in failed.stdout
    assert "a.onnx  " not in failed.stdout


@pytest.mark.usefixtures("models")
def test_dask_needs_its_package_and_a_scheduler(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("convert", "in", "-o", "out", "-t", "17", "--dask", "tcp://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = run(*arguments)
    assert (result.exit_code, Path("out").exists()) == (2, False)
    assert "--dask: requires the package distributed" in result.stderr
    assert "pip install distributed" in result.stderr


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("models")
def test_converts_on_dask_cluster(run: Run) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
        result = run("convert", "in", "-o", "out", "-t", "17", "--dask", cluster.scheduler_address)
    assert (result.exit_code, files_in()) == (0, ["a.onnx", "b/c.onnx"])


WRONG_USAGE = {
    "same file name": (
        ["old.onnx", "in/b", "in/b/c.onnx"],
        "in/b/c.onnx and in/b/c.onnx have the same output file",
    ),
    "same file name in two folders": (
        ["in", "copy"],
        "in/a.onnx and copy/a.onnx have the same output file",
    ),
    "missing input": (["old.onnx", "no.onnx"], "no.onnx: file does not exist"),
    "folder without models": (["old.onnx", "empty"], "empty: contains no *.onnx files"),
    "--in-place": (["old.onnx", "--in-place"], "both --out and --in-place are given"),
    "no processes": (["old.onnx", "--jobs", "0"], "--jobs"),
    "--force and --skip-existing": (["old.onnx", "--force", "--skip-existing"], "both --force and --skip"),
    "--inputs without --verify": (["old.onnx", "--inputs", "x.npz"], "require --verify"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG_USAGE.values(), ids=WRONG_USAGE)
@pytest.mark.usefixtures("models")
def test_wrong_usage_writes_nothing(run: Run, arguments: list[str], message: str) -> None:
    Path("empty").mkdir()
    shutil.copytree("in", "copy")
    result = run("convert", *arguments, "--out", "out", "-t", "17")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert not Path("out").exists()


def test_refuses_several_models_without_folder(run: Run, models: Path) -> None:
    result = run("convert", "old.onnx", "new.onnx", "in/a.onnx", "-t", "17")
    assert result.exit_code == 2
    assert "several models require an output folder" in result.stderr
    assert "--out" in result.stderr


def test_replaces_existing_file_only_with_force(run: Run, models: Path) -> None:
    Path("out").mkdir()
    Path("out/old.onnx").write_bytes(b"mine")
    refused = run("convert", "in/a.onnx", "old.onnx", "-o", "out", "-t", "17")
    assert refused.exit_code == 1
    assert "out/old.onnx: already exists" in refused.stdout
    assert "replace it with --force, or keep it with --skip-existing" in refused.stdout
    assert files_in() == ["a.onnx", "old.onnx"]
    assert run("convert", "in/a.onnx", "old.onnx", "-o", "out", "-t", "17", "--skip-existing").exit_code == 0
    assert Path("out/old.onnx").read_bytes() == b"mine"
    assert run("convert", "in/a.onnx", "old.onnx", "-o", "out", "-t", "17", "--force").exit_code == 0
    assert opsets() == {17}


@pytest.mark.parametrize(
    ("sources", "into", "message"),
    [
        pytest.param(["old.onnx"], ".", "old.onnx: is the input file", id="same folder as the input"),
        pytest.param(["in"], "in", "a.onnx: is the input file", id="input folder as output"),
        pytest.param(["in", "out/a.onnx"], "out", "out/a.onnx", id="path of another input"),
        pytest.param(["old.onnx"], "bad.onnx", "bad.onnx: is not a folder", id="file as output folder"),
    ],
)
def test_refuses_to_overwrite_inputs(
    run: Run, models: Path, sources: list[str], into: str, message: str
) -> None:
    Path("out").mkdir()
    shutil.copy("old.onnx", "out/a.onnx")
    before = {path: path.read_bytes() for path in models.rglob("*.onnx")}
    result = run("convert", *sources, "--out", into, "-t", "17", "--force")
    assert result.exit_code == 2
    assert message in result.stderr
    assert {path: path.read_bytes() for path in models.rglob("*.onnx")} == before


def test_ignores_results_inside_input_folder(run: Run, models: Path) -> None:
    for _ in range(2):
        assert run("convert", "in", "--out", "in/17", "-t", "17", "--force").exit_code == 0
    assert files_in("in/17") == ["a.onnx", "b/c.onnx"]


def test_converts_folder_into_its_parent(run: Run, models: Path) -> None:
    assert run("convert", "in/b", "--out", "in", "-t", "17").exit_code == 0
    assert files_in("in") == ["a.onnx", "b/c.onnx", "c.onnx", "read.me"]


def test_names_weights_to_copy(run: Run, models: Path) -> None:
    onnx.save(onnx.load("old.onnx"), "w.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    result = run("convert", "w.onnx", "--out", "out", "-t", "17", "--external", "keep")
    assert "the output has weights in separate files: w.bin" in result.stdout
    assert "help: copy them to the folder of the output" in result.stdout


def test_models_may_share_weights(run: Run, models: Path) -> None:
    onnx.save(onnx.load("old.onnx"), "w.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    shutil.copy("w.onnx", "v.onnx")
    result = run("convert", "v.onnx", "w.onnx", "--out", "out", "-t", "17")
    assert result.exit_code == 0
    assert files_in() == ["v.onnx", "w.bin", "w.onnx"]
    assert Path("out/w.bin").read_bytes() == Path("w.bin").read_bytes()


def test_verifies_all_models(run: Run, models: Path) -> None:
    result = run("convert", "in", "--out", "out", "-t", "17", "--verify")
    assert result.exit_code == 0
    assert "2 converted" in result.stdout
    result = run("convert", "in", "--out", "more", "-t", "17", "--verify", "--format", "json")
    outputs = [json.loads(line)["verification"]["outputs"] for line in result.stdout.splitlines()[:-1]]
    assert [len(each) for each in outputs] == [1, 1]


def test_bug_does_not_stop_other_conversions(run: Run, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = iter((True, False))

    def convert_or_fail(model: onnx.ModelProto, *rest: object) -> object:
        if next(calls):
            raise AssertionError("impossible")
        return convert_with(model, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("opshift.batch.convert_model.convert_with", convert_or_fail)
    result = run("convert", "in", "--out", "out", "-t", "17")
    assert result.exit_code == 1
    assert "AssertionError: impossible" in result.stdout
    assert files_in() == ["b/c.onnx"]


def test_reports_full_disk(run: Run, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    result = run("convert", "in", "--out", "out", "-t", "17")
    assert result.exit_code == 1
    assert " ".join(result.stdout.split()).count("cannot be written: No space left on device") == 2
    assert files_in() == []
