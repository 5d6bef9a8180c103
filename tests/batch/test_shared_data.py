"""A data file of an output is replaced by another model only with `force`, and then no longer its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_models import save

import opshift
from opshift.model.errors import UsageError

Step = tuple[str, dict[str, Any], str, float]
"""Source, options, its result, and the value of the weights in `out/w.bin` afterwards."""

OTHER = {"allow": "approximate"}
"""Options with another digest, so that the ledger proves nothing."""

STEPS: dict[str, list[Step]] = {
    "the first output keeps its file": [
        ("a/a.onnx", {}, "converted", 1),
        ("b/b.onnx", {}, "used by a.onnx", 1),
        ("a/a.onnx", {}, "skipped", 1),
    ],
    "force takes the file": [
        ("a/a.onnx", {}, "converted", 1),
        ("b/b.onnx", {"force": True}, "converted", 2),
        ("a/a.onnx", {}, "used by b.onnx", 2),
        ("a/a.onnx", {}, "used by b.onnx", 2),
        ("b/b.onnx", OTHER, "converted", 2),
        ("a/a.onnx", {"force": True}, "converted", 1),
        ("b/b.onnx", {}, "used by a.onnx", 1),
    ],
    "models with one file share it": [
        ("a/a.onnx", {}, "converted", 1),
        ("a/other.onnx", {}, "converted", 1),
        ("a/a.onnx", OTHER, "converted", 1),
        ("b/b.onnx", {}, "used by other.onnx", 1),
    ],
    "models with equal files share them": [
        ("a/a.onnx", {}, "converted", 1),
        ("copy/c.onnx", {}, "converted", 1),
        ("a/a.onnx", OTHER, "converted", 1),
        ("copy/c.onnx", OTHER, "converted", 1),
    ],
    "files that are kept are not used": [
        ("a/a.onnx", {}, "converted", 1),
        ("b/b.onnx", {"external": "keep"}, "converted", 1),
        ("a/a.onnx", {}, "skipped", 1),
    ],
    "links": [
        ("a/a.onnx", {"external": "link"}, "converted", 1),
        ("b/b.onnx", {"external": "link", "force": True}, "converted", 2),
        ("a/a.onnx", {"external": "link"}, "used by b.onnx", 2),
    ],
}


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, fill in (("a/a", 1.0), ("a/other", 1.0), ("b/b", 2.0), ("copy/c", 1.0)):
        save(Path(f"{name}.onnx"), fill=fill, data="w.bin")
    return tmp_path


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_data_files_of_other_outputs(models: Path, steps: list[Step]) -> None:
    for source, options, expected, fill in steps:
        (found,) = opshift.convert_many(source, 17, "out", **options)
        if expected.startswith("used by"):
            assert found.error is not None
            place = Path("out", expected.removeprefix("used by ")).absolute()
            assert (found.status, found.error.error) == ("failed", "UsageError")
            assert found.error.reason.startswith(f"contains weights of {place}, ")
            assert "--force" in found.error.remedy
        else:
            assert found.status == expected
        assert set(np.fromfile("out/w.bin", np.float32)) == {fill}


def test_changed_file_of_all_its_models_is_replaced(models: Path) -> None:
    assert {each.status for each in opshift.convert_many("a", 17, "out")} == {"converted"}
    Path("a/w.bin").write_bytes(np.full(6, 5, np.float32).tobytes())
    assert {each.status for each in opshift.convert_many("a", 17, "out")} == {"converted"}
    Path("a").rename("moved")
    Path("moved/w.bin").write_bytes(np.full(6, 6, np.float32).tobytes())
    assert {each.status for each in opshift.convert_many("moved", 17, "out")} == {"converted"}
    assert set(np.fromfile("out/w.bin", np.float32)) == {6.0}


def test_converted_types_have_a_file_for_each_output(models: Path) -> None:
    sources = ["a/a.onnx", "b/b.onnx"]
    for expected in ("converted", "skipped"):
        found = list(opshift.convert_many(sources, None, "out", types="float=double"))
        assert [each.status for each in found] == [expected] * 2
    assert sorted(each.name for each in Path("out").glob("*.onnx*")) == [
        *("a.onnx", "a.onnx.data", "b.onnx", "b.onnx.data")
    ]
    assert [set(np.fromfile(f"out/{each}.onnx.data", np.float64)) for each in "ab"] == [{1.0}, {2.0}]


@pytest.mark.parametrize("sources", [["a/a.onnx", "b/a.onnx.data"], ["b/a.onnx.data", "a/a.onnx"]])
def test_converted_data_and_model_with_one_path_conflict(models: Path, sources: list[str]) -> None:
    save(Path("b/a.onnx.data"))
    with pytest.raises(UsageError, match=r"write different files to this path|the same output file"):
        opshift.convert_many(sources, None, "out", types="float=double")


def test_removed_output_uses_no_file(models: Path) -> None:
    list(opshift.convert_many("a/a.onnx", 17, "out"))
    list(opshift.convert_many("b/b.onnx", 17, "out", force=True))
    Path("out/b.onnx").unlink()
    (found,) = opshift.convert_many("a/a.onnx", 17, "out")
    assert found.status == "converted"


def test_data_files_of_other_objects(models: Path) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.put("a/", "/shared/a/", recursive=True)
    memory.put("b/", "/shared/b/", recursive=True)
    try:
        for source, options, expected in (
            ("a", {}, {"converted"}),
            ("b", {}, {"failed"}),
            ("b", {"force": True}, {"converted"}),
            ("a", {}, {"failed"}),
            ("b", {}, {"skipped"}),
        ):
            url = f"memory://shared/{source}/{source}.onnx"
            found = list(opshift.convert_many(url, 17, "memory://shared/out", **options))  # type: ignore[arg-type]
            assert {each.status for each in found} == expected
            for each in found:
                assert each.error is None or each.error.reason.startswith("contains weights of memory://")
    finally:
        memory.rm("/shared", recursive=True)
