"""`tools/import_operator_tables.py`: tables of operators that projects publish."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import import_operator_tables as tables
from opshift.registry.runtimes.files import RUNTIMES, get_runtime
from runtime_files import operator_rows

TENSORRT = """\
| Operator | Supported | Supported Types | Restrictions |
|----------|-----------|-----------------|--------------|
| Abs      | Y         | FP32, INF64 |
| Acos     | N         |
| GatherND | Y [EXPERIMENTAL] | DOUBLE | only one
| Xor      | Y         | BOOL
"""

MIGRAPHX = """\
+----------------+-----------+-----------------+-----------+
| Operator       | Supported | Supported Types | Limits    |
+================+===========+=================+===========+
| MeanVarianceNo | ✅        | FP16,           | some      |
| rmalization    |           | FP32            | limit     |
+----------------+-----------+-----------------+-----------+
| Multinomial    | ❌        |                 |           |
+----------------+-----------+-----------------+-----------+
| Scatter        | ✅        | Any             |           |
| (deprecated)   |           |                 |           |
+----------------+-----------+-----------------+-----------+
| FastGelu       | ✅        | FP32            |           |
+----------------+-----------+-----------------+-----------+
"""

MLIR = """\
| Op |Supported Opsets (inclusive) |Limitations |Notes |
| --- |--- |--- |--- |
| **Add** |6 - * |only wide types | |
| **Adam** |none | | | |
| **Slice** |10 - 12 | | | |
"""

WEB = """\
| Operator | Opset | WebNN API | Comments |
|:------:|:------:|:------:|:------|
| Add | ai.onnx(7-12, 13, 14+) | add | |
| Conv | ai.onnx(1-10,11+); com.ms.internal.nhwc(1-10,11+) | conv2d | 2-D |
| Norm | ai.onnx(23+), com.microsoft(1+) | norm | |
| MemcpyToHost | ai.onnx(1+) | | |
"""

MOBILE = """\
|Operator|Note|
|--------|------|
|ai.onnx:Argmax||
|ai.onnx.ReduceSum||
|com.microsoft:QLinearAdd|constant scales|
"""

ENTRY = tables.Entry


def test_reads_a_table_of_tensorrt() -> None:
    assert list(tables.read_tensorrt(TENSORRT)) == [
        ENTRY("Abs", types=frozenset({"float", "int64"})),
        ENTRY("GatherND", types=frozenset({"double"}), note="only one"),
        ENTRY("Xor", types=frozenset({"bool"})),
    ]


def test_reads_a_table_of_migraphx() -> None:
    assert list(tables.read_migraphx(MIGRAPHX)) == [
        ENTRY("MeanVarianceNormalization", types=frozenset({"float", "float16"}), note="some limit"),
        ENTRY("Scatter"),
        ENTRY("FastGelu", types=frozenset({"float"})),
    ]


def test_reads_a_table_of_onnx_mlir() -> None:
    assert list(tables.read_onnx_mlir(MLIR)) == [
        ENTRY("Add", ((6, None),), note="only wide types"),
        ENTRY("Slice", ((10, 12),)),
    ]


def test_reads_a_table_of_webnn() -> None:
    assert list(tables.read_web(WEB, open_ended=True)) == [
        ENTRY("ai.onnx:Add", ((7, 12), (13, 13), (14, None))),
        ENTRY("ai.onnx:Conv", ((1, 10), (11, None)), note="2-D"),
        ENTRY("ai.onnx:Norm", ((23, None),)),
        ENTRY("com.microsoft:Norm", ((1, None),)),
    ]


def test_a_kernel_without_an_end_implements_only_its_first_version() -> None:
    first = next(tables.read_web(WEB, open_ended=False))
    assert first == ENTRY("ai.onnx:Add", ((7, 12), (13, 13), (14, 14)))


def test_reads_a_table_for_phones() -> None:
    assert list(tables.read_mobile(MOBILE)) == [
        ENTRY("ai.onnx:Argmax"),
        ENTRY("ai.onnx:ReduceSum"),
        ENTRY("com.microsoft:QLinearAdd", note="constant scales"),
    ]


def _rows(entry: tables.Entry, first: int = 9, newest: int = 20) -> dict[str, Any]:
    return operator_rows(tables.listed_kernels([entry], first, {"ai.onnx": newest, "ai.onnx.ml": 4}))


@pytest.mark.parametrize(
    ("entry", "name", "rows"),
    [
        pytest.param(ENTRY("Abs"), "ai.onnx.Abs", [{"versions": [6, 13]}], id="version that opset 9 has"),
        pytest.param(ENTRY("argmax"), "ai.onnx.ArgMax", [{"versions": [1, 13]}], id="spelling"),
        pytest.param(ENTRY("Add", ((10, 13),)), "ai.onnx.Add", [{"versions": [7, 13]}], id="range of opsets"),
        pytest.param(
            ENTRY("Binarizer", ((6, None),)), "ai.onnx.ml.Binarizer", [{"versions": [1, 1]}], id="ml"
        ),
        pytest.param(ENTRY("FastGelu"), "com.microsoft.FastGelu", [{"versions": [1, 1]}], id="contributed"),
        pytest.param(
            ENTRY("Abs", types=frozenset({"float", "bfloat16"})),
            "ai.onnx.Abs",
            [
                {"versions": [6, 12], "types": {"T": ["float"]}},
                {"versions": [13, 13], "types": {"T": ["bfloat16", "float"]}},
            ],
            id="types that a version allows",
        ),
        pytest.param(
            ENTRY("Equal", ((11, 12),), types=frozenset({"float"})),
            "ai.onnx.Equal",
            [{"versions": [11, 12], "types": {"T": ["float"]}}],
            id="type variable that allows none of them",
        ),
    ],
)
def test_lists_kernels_by_version(entry: tables.Entry, name: str, rows: list[Any]) -> None:
    assert _rows(entry) == {name: rows}


def test_indices_accept_all_their_types() -> None:
    (row,) = _rows(ENTRY("Gather", ((13, 13),), types=frozenset({"float", "int32"})), 13, 13)[
        "ai.onnx.Gather"
    ]
    assert row["types"] == {"T": ["float", "int32"]}


def test_a_table_without_types_has_those_of_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, target = tmp_path / "operators.md", tmp_path / "1.32.1.yaml"
    table.write_text("|ai.onnx:Relu||\n", "utf-8")
    monkeypatch.setattr(tables, "new_path", lambda runtime, version: target)
    tables.main(["onnxruntime-nnapi", "1.32.0", str(table), "--source", "https://example.com"])
    types = get_runtime(str(target)).operators["ai.onnx.Relu"][-1].types
    assert set(types["T"]) == {"tensor(float)", "tensor(int32)", "tensor(int8)"}


def test_omits_operators_of_newer_opsets() -> None:
    assert _rows(ENTRY("Swish")) == _rows(ENTRY("Add", ((21, None),))) == {}


def test_writes_a_file_and_prints_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table, target = tmp_path / "operators.md", tmp_path / "10.9.yaml"
    table.write_text(TENSORRT, "utf-8")
    monkeypatch.setattr(tables, "new_path", lambda runtime, version: target)
    arguments = ["tensorrt", "10.9", str(table), "--source", "https://example.com", "--opsets", "9", "20"]
    tables.main(arguments)
    assert capsys.readouterr().out == f"wrote {target}\nGatherND: only one\n"
    runtime = get_runtime(str(target))
    assert (runtime.name, runtime.opsets, runtime.ir_version) == ("tensorrt-10.9", {"ai.onnx": 20}, None)
    assert set(runtime.operators) == {"ai.onnx.Abs", "ai.onnx.GatherND", "ai.onnx.Xor"}


@pytest.mark.parametrize("runtime", tables.FORMATS)
def test_covers_each_runtime(runtime: str) -> None:
    assert list((RUNTIMES / runtime).glob("*.yaml"))
