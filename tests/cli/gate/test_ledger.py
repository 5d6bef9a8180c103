"""`--ledger`: results of unchanged models are repeated, and all others computed again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any, cast

import numpy as np
import onnx
import pytest
from cli.test_output import OPSHIFT
from onnx import TensorProto, helper
from typer.testing import Result

from opshift.cli.gate import inspect_file

Run = Callable[..., Result]


@pytest.fixture
def zoo(folder: Path, old_model: Path, new_model: Path) -> Path:
    """Write `zoo` with a convertible model, one that opset 6 refuses, and one with external data."""
    place = folder / "zoo"
    place.mkdir()
    old_model.rename(place / "a.onnx")
    new_model.rename(place / "c.onnx")
    weight = TensorProto(name="w", data_type=1, dims=[64], data_location=1)
    weight.external_data.add(key="location", value="w.bin")
    (place / "w.bin").write_bytes(np.ones(64, np.float32).tobytes())
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [64]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)
    (place / "e.onnx").write_bytes(model.SerializeToString())
    return place


@pytest.fixture
def inspected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the names of all inspected models are added."""
    names: list[str] = []
    original = inspect_file.inspect_file

    def record(inspect: Any, adapters: Any, file: str) -> Any:
        names.append(Path(file).name)
        return original(inspect, adapters, file)

    monkeypatch.setattr("opshift.cli.gate.ledger.inspect_file", record)
    return names


def records(result: Result) -> list[dict[str, Any]]:
    """Return the objects without the time."""
    *models, last = map(json.loads, result.stdout.splitlines())
    return [*models, {**last["summary"], "seconds": 0}]


COMMANDS = [["plan", "-t", "6"], ["check", "-t", "6"], ["doctor"], ["reach"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_repeats_results_of_unchanged_models(
    run: Run, zoo: Path, inspected: list[str], command: list[str]
) -> None:
    for form in ("json", "text"):
        options = (*command, "zoo", "--ledger", f"{form}.jsonl", "--format", form, "--quiet")
        first = run(*options)
        assert inspected == ["a.onnx", "c.onnx", "e.onnx"]
        inspected.clear()
        second = run(*options)
        assert inspected == []
        assert second.exit_code == first.exit_code
        if form == "text":
            assert second.stdout == first.stdout
        else:
            assert records(second) == records(first)


@pytest.mark.parametrize("form", ["text", "json"])
def test_records_the_result_of_one_model(run: Run, zoo: Path, inspected: list[str], form: str) -> None:
    for model in ("zoo/a.onnx", "zoo/c.onnx"):
        command = ("plan", model, "-t", "6", "--format", form)
        alone, recorded = run(*command), run(*command, "--ledger", "ledger.jsonl")
        assert (recorded.exit_code, recorded.output) == (alone.exit_code, alone.output)
    run("plan", "zoo", "-t", "6", "--ledger", "ledger.jsonl")
    assert inspected == ["e.onnx"]


def append_node(path: Path) -> None:
    model = onnx.load(path, load_external_data=False)
    model.graph.node.append(helper.make_node("Relu", ["y"], ["z"]))
    path.write_bytes(model.SerializeToString())


CHANGES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "nothing": (lambda zoo: None, []),
    "time": (lambda zoo: os.utime(zoo / "a.onnx", (1, 1)), []),
    "model": (lambda zoo: append_node(zoo / "a.onnx"), ["a.onnx"]),
    "data file": (lambda zoo: (zoo / "w.bin").write_bytes(bytes(256)), ["e.onnx"]),
    "missing data file": (lambda zoo: (zoo / "w.bin").unlink(), ["e.onnx"]),
    "new model": (lambda zoo: (zoo / "b.onnx").hardlink_to(zoo / "a.onnx"), ["a.onnx", "b.onnx"][1:]),
    "cut line": (lambda zoo: _truncate(Path("ledger.jsonl")), ["e.onnx"]),
    "other content": (
        lambda zoo: _replace(Path("ledger.jsonl"), '"word"', '"words"'),
        ["a.onnx", "c.onnx", "e.onnx"],
    ),
    "other version": (
        lambda zoo: _replace(Path("ledger.jsonl"), '{"gate": "', '{"gate": "0'),
        ["a.onnx", "c.onnx", "e.onnx"],
    ),
}


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _replace(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize("name", CHANGES)
def test_computes_results_of_changed_models(run: Run, zoo: Path, inspected: list[str], name: str) -> None:
    change, expected = CHANGES[name]
    options = ("plan", "zoo", "-t", "6", "--ledger", "ledger.jsonl", "--format", "json")
    run(*options)
    change(zoo)
    inspected.clear()
    result = run(*options)
    assert inspected == expected
    assert records(result) == records(run(*options[:4], "--format", "json"))
    inspected.clear()
    run(*options)
    assert inspected == (["e.onnx"] if name == "missing data file" else [])


def test_other_options_have_other_results(run: Run, zoo: Path, inspected: list[str], acme: Path) -> None:
    ledger = ("--ledger", "ledger.jsonl")
    for options in (
        ["plan", "-t", "6"],
        ["plan", "-t", "7"],
        ["plan", "-t", "6", "--ir-version", "keep"],
        ["plan", "-t", "6", "--opsets", "acme"],
        ["check", "-t", "6"],
        ["check", "-t", "6", "--level", "info"],
        ["reach"],
        ["reach", "--allow", "large", "--allow", "approximate"],
    ):
        for count in (3, 0):
            inspected.clear()
            run(options[0], "zoo", *options[1:], *ledger)
            assert len(inspected) == count, options
    definition = acme / "com.acme" / "FastConv.yaml"
    definition.write_text(definition.read_text().replace("but fast", "but very fast"))
    run("plan", "zoo", "-t", "6", "--opsets", "acme", *ledger)
    assert len(inspected) == 3


def test_relative_name_of_another_folder_is_another_model(
    run: Run, zoo: Path, inspected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = str(zoo.parent / "ledger.jsonl")
    other = zoo.parent / "other" / "zoo"
    other.mkdir(parents=True)
    (other / "a.onnx").write_bytes((zoo / "c.onnx").read_bytes())
    run("plan", "zoo", "-t", "6", "--ledger", ledger)
    inspected.clear()
    monkeypatch.chdir(other.parent)
    result = run("plan", "zoo", "-t", "6", "--ledger", ledger)
    assert inspected == ["a.onnx"]
    assert result.stdout.splitlines()[1].startswith("refused")


def test_errors_are_not_recorded(run: Run, zoo: Path, inspected: list[str]) -> None:
    (zoo / "b.onnx").write_bytes(b"\x01")
    for _ in range(2):
        inspected.clear()
        run("plan", "zoo", "-t", "6", "--ledger", "ledger.jsonl")
    assert inspected == ["b.onnx"]


@pytest.mark.parametrize("content", ["a: 1\n", "[]\n", "\x7fELF", '{"input": "a.onnx"}\n', "{}\n"])
def test_refuses_other_files(run: Run, zoo: Path, content: str) -> None:
    Path("ledger.jsonl").write_text(content)
    result = run("plan", "zoo", "-t", "6", "--ledger", "ledger.jsonl")
    assert result.exit_code == 2
    assert "is not a ledger" in result.stderr
    assert Path("ledger.jsonl").read_text() == content


@pytest.mark.full
@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.full)])
def test_killed_run_is_resumed(run: Run, zoo: Path, jobs: str) -> None:
    for number in range(300):
        (zoo / f"a{number}.onnx").hardlink_to(zoo / "a.onnx")
    options = ["plan", "zoo", "-t", "6", "--format", "json", "--jobs", jobs]
    for count in (5, 50):
        with subprocess.Popen([*OPSHIFT, *options, "--ledger", "ledger.jsonl"], stdout=PIPE) as process:
            output = cast("IO[bytes]", process.stdout)
            first = [json.loads(output.readline())["input"] for _ in range(count)]
            process.send_signal(signal.SIGKILL)
    recorded = [json.loads(line)["file"] for line in Path("ledger.jsonl").read_text().splitlines()]
    assert set(first) <= set(recorded)
    assert len(recorded) == len(set(recorded))
    resumed, whole = run(*options, "--ledger", "ledger.jsonl"), run(*options)
    assert sorted(map(str, records(resumed)[:-1])) == sorted(map(str, records(whole)[:-1]))
