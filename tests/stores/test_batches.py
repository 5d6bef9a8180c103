"""Batches from store to store: results, ledgers, and runs that were killed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import fsspec
import pytest
from support.small_models import save

import opshift
from opshift.batch import ledger as ledger_module
from opshift.batch.outcome import ModelOutcome
from opshift.model.errors import UsageError
from opshift.stores.uploads import remove_object, write_object
from zoos.s3_server import Server

NAMES = ["a/1.onnx", "a/2.onnx", "b/3.onnx", "broken.onnx", "refused.onnx"]
STATUSES = {"converted": 3, "failed": 1, "refused": 1}


@pytest.fixture(params=["memory", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a store with five models below `in`: one is refused, and one is not a model."""
    if request.param == "memory":
        request.getfixturevalue("memory")
        location = "memory://zoo"
    else:
        location = request.getfixturevalue("bucket")
    for number, name in enumerate(NAMES):
        content = save(tmp_path / "model.onnx", "Gelu" if name == "refused.onnx" else "Relu", number)
        write_object(f"{location}/in/{name}", content.read_bytes() if name != "broken.onnx" else b"\xff" * 9)
    return location


def convert(root: str, target: int = 17, **options: Any) -> list[ModelOutcome]:
    return list(opshift.convert_many(f"{root}/in/", target, f"{root}/out/", **options))


def statuses(outcomes: list[ModelOutcome]) -> Counter[str]:
    return Counter(each.status for each in outcomes)


def read(location: str) -> bytes:
    with fsspec.open(location, "rb") as file:
        return bytes(file.read())


def ledger(root: str) -> list[dict[str, Any]]:
    store, path = fsspec.url_to_fs(f"{root}/out/opshift-ledger", use_listings_cache=False)
    return [
        json.loads(line) for name in store.ls(path, detail=False) for line in store.cat(name).splitlines()
    ]


def forget(root: str) -> None:
    """Remove the ledger, like a kill before its lines are written."""
    store, path = fsspec.url_to_fs(f"{root}/out/opshift-ledger", use_listings_cache=False)
    for name in store.ls(path, detail=False):
        store.rm_file(name)


@pytest.mark.some_cases(1)
def test_results_are_those_of_local_conversions(root: str) -> None:
    assert statuses(convert(root)) == STATUSES
    for name in NAMES[:3]:
        original = read(f"{root}/in/{name}")
        assert read(f"{root}/out/{name}") == opshift.convert_version(original, 17)
    assert sorted(line["output"] for line in ledger(root)) == [f"{root}/out/{name}" for name in NAMES]
    assert {line["status"] for line in ledger(root)} == set(STATUSES)


def test_second_run_converts_what_changed(root: str, tmp_path: Path) -> None:
    convert(root)
    again = convert(root)
    assert [each.from_ledger for each in again].count(True) == 4  # broken models are read again
    write_object(f"{root}/in/a/1.onnx", save(tmp_path / "model.onnx", "Relu", 77).read_bytes())
    remove_object(f"{root}/out/a/2.onnx")
    write_object(f"{root}/out/b/3.onnx", b"damaged")
    assert statuses(convert(root)) == STATUSES
    assert convert(root)[0].from_ledger
    assert read(f"{root}/out/b/3.onnx") == opshift.convert_version(read(f"{root}/in/b/3.onnx"), 17)
    assert statuses(convert(root, target=18)) == STATUSES
    assert len(ledger(root)) == 5


@pytest.mark.full
def test_processes_write_to_a_store(bucket: str, tmp_path: Path) -> None:
    for number in range(4):
        write_object(f"{bucket}/in/{number}.onnx", save(tmp_path / "m.onnx", fill=number).read_bytes())
    assert statuses(convert(bucket, jobs=2)) == {"converted": 4}


def test_objects_of_others_are_not_replaced(root: str) -> None:
    write_object(f"{root}/out/a/1.onnx", b"mine")
    assert statuses(convert(root)) == {"converted": 2, "failed": 2, "refused": 1}
    found = next(each for each in convert(root) if each.source.endswith("a/1.onnx"))
    assert found.error is not None
    assert found.error.reason == "already exists"
    assert statuses(convert(root, skip_existing=True))["skipped"] == 3
    assert read(f"{root}/out/a/1.onnx") == b"mine"
    assert statuses(convert(root, force=True))["failed"] == 1
    assert read(f"{root}/out/a/1.onnx") != b"mine"


def test_results_of_a_killed_run_are_adopted(bucket: str, server: Server, tmp_path: Path) -> None:
    for name in ("1", "2"):
        save(tmp_path / "model.onnx", data="weights.bin")
        write_object(f"{bucket}/in/{name}.onnx", (tmp_path / "model.onnx").read_bytes())
    write_object(f"{bucket}/in/weights.bin", (tmp_path / "weights.bin").read_bytes())
    assert statuses(convert(bucket)) == {"converted": 2}
    forget(bucket)
    server.log.write_text("")
    found = convert(bucket)
    assert statuses(found) == {"converted": 2}
    assert [each.external_data for each in found] == [("weights.bin",)] * 2
    assert not [
        each
        for each in server.requests()
        if each.writes and "/out/" in each.path and "ledger" not in each.path
    ]
    assert all(each.from_ledger for each in convert(bucket))
    forget(bucket)
    assert statuses(convert(bucket, target=18)) == {"failed": 2}  # results of other options
    write_object(f"{bucket}/in/weights.bin", bytes(24))
    assert statuses(convert(bucket)) == {"failed": 2}


def test_results_of_a_run_that_was_killed_at_once_are_replaced(root: str) -> None:
    run = opshift.convert_many(f"{root}/in/", 17, f"{root}/out/")
    next(run)
    run.close()  # writes the lines of models that were started
    assert statuses(convert(root))["failed"] == 1
    assert len(ledger(root)) == 5


def test_started_models_lose_their_unfinished_uploads(bucket: str, tmp_path: Path) -> None:
    write_object(f"{bucket}/in/1.onnx", save(tmp_path / "model.onnx").read_bytes())
    line: dict[str, object] = {
        "source": f"{bucket}/in/1.onnx",
        "output": f"{bucket}/out/1.onnx",
        "status": "started",
    }
    line |= {"options": "", "owns_output": True}
    write_object(f"{bucket}/out/opshift-ledger/0.jsonl", json.dumps(line).encode() + b"\n")
    store, name = fsspec.filesystem("s3"), bucket.removeprefix("s3://")
    store.call_s3("create_multipart_upload", Bucket=name, Key="out/1.onnx")
    assert statuses(convert(bucket)) == {"converted": 1}
    assert not store.call_s3("list_multipart_uploads", Bucket=name).get("Uploads")


def test_segments_are_written_while_the_batch_runs(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "SEGMENT_SECONDS", 0.0)
    run = opshift.convert_many(f"{root}/in/", 17, f"{root}/out/")
    next(run)
    assert len(ledger(root)) == 2  # started, and done
    run.close()


def test_store_and_folder(root: str, tmp_path: Path) -> None:
    local = tmp_path / "local"
    assert statuses(list(opshift.convert_many(f"{root}/in/", 17, local))) == STATUSES
    assert (local / "a" / "1.onnx").is_file()
    back = list(opshift.convert_many(local, 18, f"{root}/back", ledger=tmp_path / "ledger.jsonl"))
    assert statuses(back) == {"converted": 3}
    again = list(opshift.convert_many(local, 18, f"{root}/back", ledger=tmp_path / "ledger.jsonl"))
    assert all(each.from_ledger for each in again)


def test_results_inside_the_source_are_not_inputs(root: str) -> None:
    for _ in range(2):
        found = list(opshift.convert_many(f"{root}/in/", 17, f"{root}/in/results/"))
        assert len(found) == 5


def test_other_models_in_the_output_folder_fail(root: str, tmp_path: Path) -> None:
    write_object(f"{root}/in/results/c/1.onnx", save(tmp_path / "model.onnx").read_bytes())
    found = list(opshift.convert_many(f"{root}/in/", 17, f"{root}/in/results/"))
    assert statuses(found) == STATUSES | {"failed": 2}
    error = next(each.error for each in found if "/results/" in each.source)
    assert error is not None
    assert error.reason.startswith("is in the output folder")


def test_two_sources_have_one_output(root: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="have the same output file"):
        opshift.convert_many([f"{root}/in/a/1.onnx", save(tmp_path / "1.onnx")], 17, f"{root}/out")
    with pytest.raises(UsageError, match="is the input file"):
        opshift.convert_many(f"{root}/in/", 17, f"{root}/in/")
