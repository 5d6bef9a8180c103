"""`tools/import_kernels.py` and `tools/runtime_files.py`: rows of kernels, and files with differences."""

from __future__ import annotations

import re
from typing import Any

import pytest

import import_kernels
import runtime_files as written
from opshift.registry.runtimes.files import RUNTIMES, runtime_files

LAST = written.ANY_LATER_VERSION


def _rows(*kernels: tuple[str, str, tuple[int, int], dict[str, list[str]]]) -> dict[str, Any]:
    rows = written.onnxruntime_rows(kernels, 13)
    del rows["ai.onnx.Constant"]
    return rows


def _kernel(first: int, last: int, *types: str, name: str = "Add", domain: str = "") -> Any:
    return domain, name, (first, last), {"T": [f"tensor({each})" for each in types]}


@pytest.mark.parametrize(
    ("kernels", "rows"),
    [
        pytest.param(
            [_kernel(7, 12, "float"), _kernel(7, 12, "double")],
            [{"versions": [7, 12], "types": {"T": ["double", "float"]}}],
            id="types of one range",
        ),
        pytest.param(
            [_kernel(7, 12, "float"), _kernel(13, 13, "float"), _kernel(14, LAST, "float")],
            [{"versions": [7, 14], "types": {"T": ["float"]}}],
            id="adjacent ranges",
        ),
        pytest.param(
            [_kernel(1, 6, "float"), _kernel(13, LAST, "float")],
            [
                {"versions": [1, 6], "types": {"T": ["float"]}},
                {"versions": [13, 13], "types": {"T": ["float"]}},
            ],
            id="gap",
        ),
        pytest.param(
            [_kernel(7, 12, "float"), _kernel(13, LAST, "float"), _kernel(13, LAST, "int8")],
            [
                {"versions": [7, 12], "types": {"T": ["float"]}},
                {"versions": [13, 13], "types": {"T": ["float", "int8"]}},
            ],
            id="types added in a later version",
        ),
        pytest.param(
            [_kernel(8, 10, "float")],
            [{"versions": [8, 10], "types": {"T": ["float"]}, "nonstandard": True}],
            id="range without a version",
        ),
    ],
)
def test_merges_kernels(kernels: list[Any], rows: list[Any]) -> None:
    assert _rows(*kernels) == {"ai.onnx.Add": rows}


def test_keeps_combinations_that_are_not_a_product() -> None:
    pairs = [("int64", "float"), ("int64", "int8"), ("float", "float")]
    kernels = [("", "Cast", (13, LAST), {"T1": [f"tensor({a})"], "T2": [f"tensor({b})"]}) for a, b in pairs]
    rows = _rows(*kernels)["ai.onnx.Cast"]
    found = [(a, b) for row in rows for a in row["types"]["T1"] for b in row["types"]["T2"]]
    assert sorted(found) == sorted(pairs)


def test_writes_sequences_of_sets_and_maps() -> None:
    integers = [f"seq(tensor({sign}int{bits}))" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    sequences = ("", "SequenceAt", (11, LAST), {"S": integers})
    maps = ("ai.onnx.ml", "ZipMap", (1, LAST), {"T": ["seq(map(int64,tensor(float)))"]})
    found = _rows(sequences, maps)
    assert found["ai.onnx.SequenceAt"][0]["types"] == {"S": ["seq(all_integer_types)"]}
    assert found["ai.onnx.ml.ZipMap"][0]["types"] == {"T": ["seq(map(int64, float))"]}


def test_omits_internal_operators() -> None:
    internal = (
        _kernel(1, LAST, "float", name="MemcpyToHost"),
        _kernel(1, 1, "float", domain="com.ms.internal.nhwc"),
    )
    assert _rows(*internal) == {}


def test_a_file_has_the_differences_from_the_older_release() -> None:
    text = import_kernels.kernel_file_text("1.17.0", [_kernel(7, 14, "float")])
    assert "extends: onnxruntime-1.16.3\n" in text
    assert "opsets: {ai.onnx: 20, ai.onnx.ml: 4, com.microsoft: 1}\n" in text
    assert "ir_version" not in text
    assert "  ai.onnx.Add:\n  - {versions: [7, 14], types: {T: [float]}}\n" in text
    assert "  ai.onnx.Abs: []\n" in text


def test_a_file_before_all_others_has_the_differences_from_the_next() -> None:
    text = import_kernels.kernel_file_text("1.0", [_kernel(7, 14, "float")])
    assert "extends: onnxruntime-1.14.1\n" in text


def test_existing_files_are_not_changed() -> None:
    before = {path: path.read_bytes() for path in runtime_files().values()}
    with pytest.raises(SystemExit, match=re.escape(f"{RUNTIMES / 'onnxruntime' / '1.20.1.yaml'} exists")):
        import_kernels.main(["1.20.1"])
    assert {path: path.read_bytes() for path in runtime_files().values()} == before
