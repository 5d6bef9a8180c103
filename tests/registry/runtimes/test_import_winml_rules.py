"""`tools/import_winml_rules.py`: kernels and restrictions from measured forms of nodes."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support.toy_runtime import model

import import_winml_rules as winml
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import RUNTIMES, get_runtime
from opshift.runtimes.check_support import check_support


def _table(op_type: str, opset: int, *rows: tuple[dict[str, Any], bool]) -> winml.Table:
    return winml.Table(default_registry().get_schema(op_type, opset), rows)


def _relu(kind: str, rank: int, ran: bool) -> tuple[dict[str, Any], bool]:
    return {"T_Relu": kind, "X_dim": rank, "X_is_none": False, "X_is_constant": False}, ran


def test_a_kernel_accepts_types_that_ran() -> None:
    rows = [_relu(kind, rank, kind == "FLOAT") for kind, rank in product(["FLOAT", "DOUBLE"], [1, 2, 3])]
    found = winml.fold(_table("Relu", 14, *rows))
    assert found == winml.Folded([{"T": "tensor(float)"}], [], 6)


def test_a_type_that_ran_with_one_of_many_ranks_is_an_error() -> None:
    rows = [_relu("DOUBLE", rank, rank == 6) for rank in range(7)]
    assert winml.fold(_table("Relu", 14, *rows)).types == []


def test_a_rank_with_which_nothing_ran_is_refused() -> None:
    rows = [_relu("FLOAT", rank, rank < 5) for rank in range(7)]
    assert winml.fold(_table("Relu", 14, *rows)).restrictions == [
        {"reason": "`X` must not have rank 5 or 6", "when": {"ranks": {"X": [5, 6]}}}
    ]


@pytest.mark.parametrize(
    ("refused", "restriction"),
    [
        (["computed"], {"reason": "`axis` must be constant", "when": {"computed": ["axis"]}}),
        (["constant"], {"reason": "`axis` must not be constant", "when": {"constant": ["axis"]}}),
        (["computed", "constant"], None),
    ],
)
def test_an_input_that_never_ran_in_one_way_is_refused(refused: list[str], restriction: object) -> None:
    rows = [
        (
            {"T_CumSum": "FLOAT", "axis_is_none": False, "axis_is_constant": form == "constant"},
            form not in refused,
        )
        for form in ("constant", "computed")
    ]
    found = winml.fold(_table("CumSum", 14, *rows))
    assert found.restrictions == ([restriction] if restriction else [])
    assert len(found.types) == (restriction is not None)


def test_attributes_are_refused_by_value_or_default() -> None:
    rows = [
        ({"T_CumSum": "FLOAT", "attr_exclusive": 1, "attr_exclusive_is_none": False}, False),
        ({"T_CumSum": "FLOAT", "attr_exclusive_is_none": True}, True),
        ({"T_CumSum": "FLOAT", "attr_reverse": 1, "attr_reverse_is_none": False}, True),
    ]
    assert winml.fold(_table("CumSum", 14, *rows)).restrictions == [
        {"reason": "the attribute `exclusive` must not be 1", "when": {"attributes": {"exclusive": [1]}}}
    ]


def test_a_node_that_no_restriction_refuses_is_not_explained() -> None:
    rows = [_relu("FLOAT", rank, ran) for rank, ran in [(1, True), (2, True), (1, False)]]
    assert winml.fold(_table("Relu", 14, *rows)).explained == 2


def test_writes_a_file_with_restrictions_of_some_versions(tmp_path: Path) -> None:
    tables = [
        _table("Relu", opset, *(_relu("FLOAT", rank, rank < limit) for rank in range(7)))
        for opset, limit in [(14, 7), (6, 5), (13, 5)]
    ]
    text, explained, total = winml.winml_file_text("winml-other", "0.0.1", tables)
    assert (explained, total) == (21, 21)
    path = tmp_path / "file.yaml"
    path.write_text(text, "utf-8")
    relu = get_runtime(str(path)).restrictions["ai.onnx.Relu"]
    assert [each.versions for each in relu if not isinstance(each, str)] == [(6, 13)]


def test_reads_the_tables_of_a_folder(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"T_Relu": ['{"t": "str", "v": "FLOAT"}'], "compile_run_success": [[True, False]]}
    for name in (
        "Relu_QNNExecutionProvider_NPU_ai.onnx_opset14",
        "Pattern_QNNExecutionProvider_NPU_ai.onnx_opset1",
    ):
        parquet.write_table(pyarrow.table(columns), tmp_path / f"{name}.parquet")
    (table,) = winml.read_tables(tmp_path)
    assert (str(table.version.id), table.rows) == ("ai.onnx.Relu:14", [({"T_Relu": "FLOAT"}, False)])


@pytest.mark.parametrize(
    ("nodes", "types", "reason"),
    [
        pytest.param("y = Relu (x)", "float[2] x", "", id="runs"),
        pytest.param("y = Relu (x)", "float[1, 1, 1, 1, 1, 1] x", "rank 6", id="rank"),
        pytest.param("y = CumSum (x, a)", "float[2] x, int64 a", "`axis` must be constant", id="fed axis"),
    ],
)
def test_describes_a_qualcomm_npu(nodes: str, types: str, reason: str) -> None:
    runtime = get_runtime("winml-qnn-npu-0.4.0")
    found = check_support(model(nodes, types, opset=18), runtime)
    assert found == ()  # the CPU runs the rest
    assert runtime.falls_back == "onnxruntime-1.24.4"
    if reason:
        texts = [str(each) for name in ("Relu", "CumSum") for each in runtime.restrictions[f"ai.onnx.{name}"]]
        assert any(reason in each for each in texts)


@pytest.mark.parametrize("runtime", winml.RUNTIMES)
def test_covers_each_runtime(runtime: str) -> None:
    assert list((RUNTIMES / runtime).glob("*.yaml"))
