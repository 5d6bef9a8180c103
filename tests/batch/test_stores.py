"""Batches from and to stores: nothing is converted twice, and existing objects are kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import fsspec
import onnx
import pytest
from support.small_models import save

import opshift
from opshift.stores.find_models import FoundModel
from zoos.s3_server import Server, s3_server

FOUND = {"converted": 4, "refused": 1, "failed": 1}
AGAIN = {"skipped": 4, "refused": 1, "failed": 1}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    store = fsspec.get_filesystem_class("s3")
    store.clear_instance_cache()  # instances have the address of a server
    with s3_server(tmp_path_factory.mktemp("s3") / "requests.jsonl") as started:
        yield started
    store.clear_instance_cache()


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    for number in range(3):
        save(folder / str(number) / "m.onnx", fill=number)
    save(folder / "d" / "d.onnx", data="w.bin")
    save(folder / "refused.onnx", "Gelu")
    (folder / "broken.onnx").write_bytes(b"\xff" * 9)
    return folder


@pytest.fixture(params=["s3", "memory"])
def store(request: pytest.FixtureRequest, models: Path) -> Iterator[tuple[str, Any]]:
    """Yield the URL of a folder, and its store, which has the models in `in`."""
    if request.param == "s3":
        request.getfixturevalue("server")
    store = fsspec.filesystem(
        request.param, **({"use_listings_cache": False} if request.param == "s3" else {})
    )
    folder = f"batch{abs(hash(request.node.name))}"
    if request.param == "s3":
        store.mkdir(folder)
    store.put(f"{models}/", f"{folder}/in/", recursive=True)
    yield f"{request.param}://{folder}", store
    store.rm(folder, recursive=True)


def run(source: str, out: str, **options: Any) -> Counter[str]:
    return Counter(each.status for each in opshift.convert_many(source, 17, out, **options))


def records(store: Any, url: str) -> list[dict[str, Any]]:
    names = sorted(store.glob(f"{url.partition('://')[2]}/out/opshift-ledger/*.jsonl"))
    return [json.loads(line) for name in names for line in store.cat_file(name).splitlines()]


@pytest.mark.full
def test_from_store_to_store(store: tuple[str, Any]) -> None:
    url, files = store
    assert run(f"{url}/in", f"{url}/out") == FOUND
    root = url.partition("://")[2]
    found = {each.removeprefix("/") for each in files.find(f"{root}/out") if "ledger" not in each}
    assert found == {
        f"{root}/out/{each}" for each in ("0/m.onnx", "1/m.onnx", "2/m.onnx", "d/d.onnx", "d/w.bin")
    }
    model = onnx.load_model_from_string(files.cat_file(f"{root}/out/0/m.onnx"))
    assert model.opset_import[0].version == 17
    assert run(f"{url}/in", f"{url}/out") == AGAIN
    recorded = records(files, url)
    assert Counter(each["status"] for each in recorded) == FOUND
    assert {each["source"].partition("/in/")[2] for each in recorded} == {
        "0/m.onnx", "1/m.onnx", "2/m.onnx", "d/d.onnx", "refused.onnx", "broken.onnx",
    }  # fmt: skip


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("changed", ["0/m.onnx", "d/w.bin"])
def test_changed_source_is_converted_again(store: tuple[str, Any], changed: str) -> None:
    url, files = store
    run(f"{url}/in", f"{url}/out")
    path = f"{url.partition('://')[2]}/in/{changed}"
    content = b"\1" * 24
    if changed.endswith("onnx"):
        model = onnx.load_model_from_string(files.cat_file(path))
        model.producer_name = "changed"
        content = model.SerializeToString()
    files.pipe_file(path, content)
    assert run(f"{url}/in", f"{url}/out") == {**AGAIN, "skipped": 3, "converted": 1}
    assert run(f"{url}/in", f"{url}/out") == AGAIN


def test_changed_or_missing_output_is_written_again(store: tuple[str, Any]) -> None:
    url, files = store
    run(f"{url}/in", f"{url}/out")
    root = url.partition("://")[2]
    files.pipe_file(f"{root}/out/0/m.onnx", b"edited")
    files.rm_file(f"{root}/out/1/m.onnx")
    assert run(f"{url}/in", f"{url}/out") == {**AGAIN, "skipped": 2, "converted": 2}


def test_foreign_objects_are_kept(store: tuple[str, Any]) -> None:
    url, files = store
    path = f"{url.partition('://')[2]}/out/0/m.onnx"
    files.pipe_file(path, b"mine")
    assert run(f"{url}/in", f"{url}/out") == {**FOUND, "converted": 3, "failed": 2}
    assert run(f"{url}/in", f"{url}/out", skip_existing=True) == {**AGAIN}
    assert files.cat_file(path) == b"mine"
    assert run(f"{url}/in", f"{url}/out", force=True) == {**AGAIN, "skipped": 3, "converted": 1}


def test_results_without_lines_are_adopted(server: Server, models: Path) -> None:
    """A run is killed after it wrote objects, and before it recorded them."""
    files = fsspec.filesystem("s3", use_listings_cache=False)
    files.mkdir("killed")
    files.put(f"{models}/", "killed/in/", recursive=True)
    run("s3://killed/in", "s3://killed/out")
    states = {path: files.info(path)["LastModified"] for path in files.find("killed/out") if "onnx" in path}
    files.rm("killed/out/opshift-ledger", recursive=True)
    server.log.write_text("")
    assert run("s3://killed/in", "s3://killed/out") == FOUND
    assert not [each for each in server.requests() if each.writes and each.path.endswith("onnx")]
    assert {path: files.info(path)["LastModified"] for path in states} == states
    assert Counter(each["status"] for each in records(files, "s3://killed")) == FOUND
    assert run("s3://killed/in", "s3://killed/out") == AGAIN
    found = opshift.convert_many("s3://killed/in", 18, "s3://killed/other")
    assert Counter(each.status for each in found) == FOUND


@pytest.mark.full
def test_between_store_and_folder(server: Server, models: Path, tmp_path: Path) -> None:
    fsspec.filesystem("s3").mkdir("mixed")
    assert run(str(models), "s3://mixed/out") == FOUND
    assert run(str(models), "s3://mixed/out", jobs=2) == AGAIN
    back = tmp_path / "back"
    assert run("s3://mixed/out/**/*.onnx", str(back)) == {"unchanged": 4}
    assert run("s3://mixed/out/**/*.onnx", str(back)) == {"skipped": 4}
    assert (back / "d" / "w.bin").read_bytes() == (models / "d" / "w.bin").read_bytes()


@pytest.mark.parametrize(
    "key", ["../../evil.onnx", "a/../../evil.onnx", "a//evil.onnx", "./evil.onnx", "nul\0.onnx", "l" * 300]
)
def test_names_that_are_no_paths_fail_alone(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = save(tmp_path / "good.onnx", "Relu")

    def models(*_: object) -> Iterator[FoundModel]:
        yield FoundModel(f"memory://in/{key}", key)
        yield FoundModel(str(good), "good.onnx")

    monkeypatch.setattr("opshift.batch.convert_many.find_models", models)
    found = list(opshift.convert_many("memory://in", 17, tmp_path / "out"))
    assert [each.status for each in found] == ["failed", "converted"]
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {
        "good.onnx",
        "opshift-ledger.jsonl",
    }


@pytest.mark.parametrize("linked", ["a.onnx", "sub", "opshift-ledger.jsonl"])
def test_links_in_the_output_folder_are_not_followed(linked: str, tmp_path: Path) -> None:
    source, out, outside = tmp_path / "in", tmp_path / "out", tmp_path / "outside"
    (source / "sub").mkdir(parents=True)
    for name in "a.onnx", "sub/b.onnx":
        save(source / name, "Relu")
    outside.mkdir()
    out.mkdir()
    victim = outside / "victim"
    victim.write_bytes(b"{")
    (out / linked).symlink_to(outside if linked == "sub" else victim)
    with suppress(opshift.UsageError):  # about the ledger
        found = {Path(each.source).name: each.status for each in opshift.convert_many(source, 17, out)}
        assert found == {"a.onnx": "converted", "b.onnx": "converted"} | {
            {"a.onnx": "a.onnx", "sub": "b.onnx"}[linked]: "failed"
        }
    assert [path.name for path in outside.iterdir()] == ["victim"]
    assert victim.read_bytes() == b"{"


@pytest.mark.full
def test_data_files_of_two_folders_are_refused(server: Server, models: Path) -> None:
    files = fsspec.filesystem("s3", use_listings_cache=False)
    files.mkdir("two")
    files.put(f"{models}/d/", "two/a/", recursive=True)
    (models / "d" / "w.bin").write_bytes(b"\1" * 24)
    (models / "d" / "d.onnx").rename(models / "d" / "e.onnx")
    files.put(f"{models}/d/", "two/b/", recursive=True)
    for options in ({}, {"force": True}):
        found = list(opshift.convert_many(["s3://two/a", "s3://two/b"], 17, "s3://two/out", **options))  # type: ignore[arg-type]
        assert [each.status for each in found] in (["converted", "failed"], ["skipped", "failed"])
        assert found[1].error is not None
        if options:
            assert "convert each folder separately" in found[1].error.remedy
    assert files.cat_file("two/out/w.bin") == files.cat_file("two/a/w.bin")
