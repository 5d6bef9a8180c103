"""`opshift runs`: runtimes that run a model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from support.toy_runtime import model
from typer.testing import Result

Run = Callable[..., Result]

DEVICE = """
runtime: acme
version: "2.1"
opsets: {ai.onnx: 13}
ir_version: 7
expands_functions: false
evidence: {kind: documentation, source: tests, date: 2026-11-23}
operators:
  ai.onnx.Relu:
  - {versions: [6, 14], types: {T: [float]}}
wrong: {ai.onnx.Relu:13: off by one}
"""


@pytest.fixture
def device(folder: Path) -> str:
    """Write a runtime, and models that run on it after a conversion, and not at all."""
    onnx.save(model("y = Relu (x)"), folder / "relu.onnx")
    onnx.save(model("a = Relu (x) b = Abs (a) y = Abs (b)"), folder / "abs.onnx")
    (folder / "acme.yaml").write_text(DEVICE, "utf-8")
    return "acme.yaml"


def test_lists_all_runtimes(run: Run, device: str) -> None:
    result = run("runs", "relu.onnx")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    (newest,) = (line for line in lines if line[:2] == ["onnxruntime", "1.17.3"])
    assert [*newest[2:3], *newest[4:]] == ["to", "yes", "package"]
    start = ["onnxruntime", "1.15.1", "to", "1.16.3", "at", "opset", "19", "0", "more", "nodes", "package"]
    assert start in lines


def test_prints_how_to_convert_and_notes(run: Run, device: str) -> None:
    result = run("runs", "relu.onnx", "--runtime", device)
    assert result.exit_code == 1
    text = " ".join(result.stdout.split())
    assert "acme-2.1 at opset 13 0 more nodes, 1 wrong documents acme-2.1: after conversion" in text
    assert "acme-2.1 supports IR version 7, the model has 9" in text
    assert "opshift convert relu.onnx OUT -t 13" in text
    assert "wrong results: ai.onnx.Relu:13: off by one" in text
    shutil.copy("relu.onnx", "my relu.onnx")
    result = run("runs", "my relu.onnx", "--runtime", device)
    assert "opshift convert 'my relu.onnx' OUT -t 13" in " ".join(result.stdout.split())


def test_prints_missing_kernels(run: Run, device: str) -> None:
    result = run("runs", "abs.onnx", "-r", device, "-r", "onnxruntime-1.31")
    assert result.exit_code == 1
    text = " ".join(result.stdout.split())
    assert "acme-2.1 no missing Abs:13 (float) documents" in text
    assert "acme-2.1 has no kernel of ai.onnx.Abs graph, node Abs -> b graph, node Abs -> y" in text
    assert "try opshift fit abs.onnx OUT --runtime acme.yaml" in text


@pytest.mark.parametrize(
    ("node", "advice"),
    [
        ("Foo (x)", "help: correct the name"),
        ("com.acme.Foo (x)", "help: it supports the domains ai.onnx"),
        ("com.other.Foo (x)", "help: add an opset import of com.other"),
    ],
)
def test_does_not_advise_to_fit_unknown_operators(run: Run, folder: Path, node: str, advice: str) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]> g (float x) => (float y) {{ y = {node} }}'
    )
    onnx.save(model, "unknown.onnx")
    text = " ".join(run("runs", "unknown.onnx", "-r", "onnxruntime-1.20.1").stdout.split())
    assert advice in text
    assert "opshift fit" not in text


@pytest.mark.parametrize("form", ["text", "sarif", "github"])
def test_advice_names_the_file_of_a_runtime(run: Run, device: str, form: str) -> None:
    result = run("runs", "abs.onnx", "-r", "onnxruntime-1.31", "-r", device, "--format", form)
    assert "try opshift fit abs.onnx OUT --runtime acme.yaml" in " ".join(result.stdout.split())
    assert "--runtime acme-2.1" not in result.stdout


def test_succeeds_if_all_named_runtimes_run_the_model(run: Run, device: str) -> None:
    assert run("runs", "abs.onnx", "-r", "onnxruntime-1.31").exit_code == 0


@pytest.mark.parametrize(
    "others", [("onnxruntime-1.31",), ("onnxruntime-1.31.1",), ("acme.yaml", "./acme.yaml")]
)
def test_runtime_that_is_named_twice_counts_once(run: Run, device: str, others: tuple[str, ...]) -> None:
    named = (device, "onnxruntime-1.31", *others)
    options = [part for each in named for part in ("-r", each)]
    one = json.loads(run("runs", "abs.onnx", *options, "--format", "json").stdout)
    assert [each["runtime"] for each in one["runtimes"]] == ["acme-2.1", "onnxruntime-1.31.1"]
    *_, last = run("runs", "abs.onnx", "relu.onnx", *options, "--format", "json").stdout.splitlines()
    counts = json.loads(last)["summary"]["runtimes"]
    assert counts["onnxruntime-1.31.1"] == {"runs": 2, "reasons": {}}


def test_prints_json(run: Run, device: str) -> None:
    result = run("runs", "abs.onnx", "-r", device, "--format", "json")
    data = json.loads(result.stdout)
    (found,) = data["runtimes"]
    assert (data["input"], found["runtime"], found["verdict"]) == ("abs.onnx", "acme-2.1", "does not run")
    assert found["conversion"]["support"]["missing"][0]["operator"] == "ai.onnx.Abs:13"


def test_reads_several_models(run: Run, device: str) -> None:
    result = run("runs", "abs.onnx", "relu.onnx", "-r", device)
    assert result.exit_code == 1
    assert "2 models: 1 does not run, 1 after conversion" in result.stdout
    title, *rows = result.stdout.splitlines()[:3]
    assert {each.rindex(" ", 0, each.index(".onnx")) + 1 for each in rows} == {title.index("model")}
    found = run("runs", "abs.onnx", "-r", device, "--format", "github").stdout
    assert "title=runtime.missing" in found


def test_prints_a_row_for_each_runtime_and_what_it_lacks(run: Run, device: str) -> None:
    result = run("runs", ".", "-r", device)
    row = next(each for each in result.stdout.splitlines() if each.startswith("acme-2.1"))
    assert row.split(maxsplit=3)[1:] == ["1", "1", "Abs:13 (float)"]
    summary = json.loads(run("runs", ".", "-r", device, "--format", "json").stdout.splitlines()[-1])[
        "summary"
    ]
    assert summary["runtimes"]["acme-2.1"]["does not run"] == 1
    result = run("runs", ".")
    assert result.exit_code == 0
    assert "Causes" not in result.stdout
    assert any(each.startswith("onnxruntime 1.") for each in result.stdout.splitlines())


def test_a_row_names_properties_of_models_that_a_runtime_refuses(run: Run, device: str) -> None:
    Path(device).write_text(f"{DEVICE}\nneeds_input_ranks: true\n", "utf-8")
    for opset in 13, 14:
        onnx.save(model("y = Relu (x)", "float[] x", opset), f"unranked{opset}.onnx")
    result = run("runs", "unranked13.onnx", "unranked14.onnx", "-r", device)
    row = next(each for each in result.stdout.splitlines() if each.startswith("acme-2.1"))
    assert "2 inputs of unknown rank, an older opset or IR version" in " ".join(row.split())


def test_refuses_unknown_runtimes_before_it_reads_models(run: Run) -> None:
    result = run("runs", "missing.onnx", "-r", "onnxruntime-0.1")
    assert result.exit_code == 2
    assert "no data about the runtime 'onnxruntime-0.1'" in result.stderr


def test_runs_adapters_of_private_domains(run: Run, device: str) -> None:
    Path("adapters.py").write_text("print('adapters are executed')", "utf-8")
    result = run("runs", "relu.onnx", "--runtime", device, "--adapters", "adapters.py", "--format", "json")
    assert result.stdout.startswith("adapters are executed\n{")
