"""`opshift runtimes`: all runtimes, one of them, and its kernels of an operator."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from opshift.registry.runtimes.files import runtime_files

Run = Callable[..., Result]


def test_lists_all_runtimes(run: Run) -> None:
    result = run("runtimes")
    rows = [line.split() for line in result.stdout.splitlines()[2:]]
    assert result.exit_code == 0
    assert [row[0] for row in rows] == list(runtime_files())
    assert ["onnxruntime-1.31.1", "cpu", "13", "26", "5", "1"] in [row[:6] for row in rows]
    data = json.loads(run("runtimes", "--format", "json").stdout)["runtimes"]
    assert [each["name"] for each in data] == list(runtime_files())
    assert {each["evidence"]["kind"] for each in data} >= {"kernel_registry", "documentation"}


def test_shows_what_runs_nodes_without_a_kernel(run: Run) -> None:
    assert (
        "nodes without a kernel run on onnxruntime-1.20.1" in run("runtimes", "onnxruntime-cuda-1.20").stdout
    )
    data = json.loads(run("runtimes", "onnxruntime-cuda-1.20", "--format", "json").stdout)
    assert data["falls_back"] == "onnxruntime-1.20.1"


def test_shows_a_runtime(run: Run) -> None:
    result = run("runtimes", "onnxruntime-1.31")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == "onnxruntime-1.31.1, cpu"
    assert "without a kernel for float16, it computes in float" in lines
    assert "ai.onnx.Acosh 9 to 22 T: tensor(float)" in lines
    assert "ai.onnx.Constant 1 to 26 all types" in lines
    assert "ai.onnx.Mish:22 no kernel, but a function body" in lines
    assert "ai.onnx.RandomNormal:22 no kernel" in lines
    assert not any("Upsample:10" in line for line in lines)
    required = "the attribute `layout` must be 0; the attribute `hidden_size` must be given"
    assert f"ai.onnx.RNN {required}" in lines
    data = json.loads(run("runtimes", "onnxruntime-1.31", "--format", "json").stdout)
    assert data["operators"]["ai.onnx.Acosh"] == [
        {"versions": [9, 22], "types": {"T": ["tensor(float)"]}, "nonstandard": False}
    ]
    assert {"operator": "ai.onnx.RandomNormal:22", "kernels": [], "function_body": False} in data[
        "without_kernel"
    ]
    assert data["opsets"] == {"ai.onnx": 26, "ai.onnx.ml": 5, "com.microsoft": 1}


def test_shows_the_versions_of_an_operator(run: Run) -> None:
    result = run("runtimes", "onnxruntime-1.20.1", "Gelu")
    assert result.stdout.splitlines() == [
        "ai.onnx.Gelu in onnxruntime-1.20.1",
        "version          types",
        "ai.onnx.Gelu:20  T: tensor(float)",
    ]
    data = json.loads(run("runtimes", "onnxruntime-1.20.1", "MaxPool", "--format", "json").stdout)
    kernels = {each["operator"]: bool(each["kernels"]) for each in data["versions"]}
    assert kernels["ai.onnx.MaxPool:12"]
    assert not kernels["ai.onnx.MaxPool:22"]


def test_a_function_of_a_newer_opset_is_not_expanded(run: Run) -> None:
    lines = run("runtimes", "onnxruntime-1.20.1", "Swish").stdout.splitlines()
    assert lines[2].split(maxsplit=1) == ["ai.onnx.Swish:24", "no kernel"]


def test_shows_wrong_results(run: Run) -> None:
    result = run("runtimes", "onnxruntime-1.31.1", "MaxUnpool")
    assert "ai.onnx.MaxUnpool:22  with `output_shape`, values are at wrong positions" in result.stdout
    data = json.loads(run("runtimes", "onnxruntime-1.31.1", "MaxUnpool", "--format", "json").stdout)
    assert list(data["notes"]) == ["ai.onnx.MaxUnpool:22"]


@pytest.mark.parametrize(
    ("operator", "row"),
    [
        ("com.microsoft.FusedMatMul", "com.microsoft.FusedMatMul:1  T: tensor(float)"),
        (
            "SimplifiedLayerNormalization",
            "ai.onnx.SimplifiedLayerNormalization:1  T: tensor(float); U: tensor(float); V: tensor(float)",
        ),
    ],
)
def test_shows_operators_without_a_definition(run: Run, operator: str, row: str) -> None:
    assert row in run("runtimes", "onnxruntime-1.16.3", operator).stdout.splitlines()


def test_reads_a_file(run: Run, folder: Path) -> None:
    (folder / "mine.yaml").write_text(
        "runtime: mine\nversion: '1'\nextends: onnxruntime-1.31.1\n"
        "evidence: {kind: measurement, source: my build, date: 2026-11-23}\n"
        "operators: {ai.onnx.Add: [{versions: [14, 14], types: {T: [bfloat16]}}]}\n"
    )
    assert "ai.onnx.Add:14  T: tensor(bfloat16)" in run("runtimes", "mine.yaml", "Add").stdout


@pytest.mark.parametrize(
    ("arguments", "exit_code", "reason", "remedy"),
    [
        (
            ["onnxruntime-1.13"],
            2,
            "no data about the runtime 'onnxruntime-1.13'",
            "known: onnxruntime-1.14.1",
        ),
        (["missing.yaml"], 2, "file does not exist", "correct the path"),
        (["onnxruntime-1.31", "Sofmax"], 2, "has an operator 'Sofmax'", "did you mean Softmax"),
        (["onnxruntime-1.31", "com.microsoft.FusedMatMull"], 2, "has an operator", "FusedMatMul"),
        (["onnxruntime-1.31", ":"], 2, "invalid operator name ':'", "Conv"),
    ],
)
def test_refuses_unknown_names(
    run: Run, arguments: list[str], exit_code: int, reason: str, remedy: str
) -> None:
    result = run("runtimes", *arguments)
    assert result.exit_code == exit_code
    assert reason in result.stderr
    data = json.loads(run("runtimes", *arguments, "--format", "json").stdout)
    assert reason in data["reason"]
    assert remedy in data["remedy"]
