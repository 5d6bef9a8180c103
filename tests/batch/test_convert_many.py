"""Every model gets one outcome, on every executor, and a later call continues an earlier one."""

from __future__ import annotations

import json
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from support.small_models import opset, save

import opshift
from opshift.model.errors import OpshiftError, UsageError
from opshift.stores.find_models import FoundModel

EXPECTED = {"converted": 8, "refused": 1, "failed": 1}


def statuses(**options: object) -> Counter[str]:
    return Counter(each.status for each in opshift.convert_many("in", 17, "out", **options))  # type: ignore[arg-type]


def records(path: str = "out/opshift-ledger.jsonl") -> list[dict[str, object]]:
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def spawned() -> Executor:
    return ProcessPoolExecutor(2, get_context("spawn"))


def forked() -> Executor:
    return ProcessPoolExecutor(2, get_context("fork"))


def threads() -> Executor:
    return ThreadPoolExecutor(3)


@pytest.mark.parametrize("jobs", [None, 1, 2, pytest.param(5, marks=pytest.mark.full)])
def test_converts_in_processes(zoo: Path, jobs: int | None) -> None:
    assert statuses(jobs=jobs) == EXPECTED
    assert {opset(path) for path in Path("out").rglob("*.onnx")} == {17}
    assert Counter(each["status"] for each in records()) == EXPECTED


@pytest.mark.some_cases(1)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("start", [spawned, forked, threads])
def test_converts_with_executor(zoo: Path, start: Callable[[], Executor]) -> None:
    with start() as executor:
        assert statuses(executor=executor) == EXPECTED
    assert Counter(each["status"] for each in records()) == EXPECTED


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.full)])
@pytest.mark.filterwarnings("ignore")
def test_converts_with_dask(zoo: Path, processes: bool) -> None:
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, processes=processes, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        assert statuses(executor=client.get_executor(pure=False)) == EXPECTED
    assert Counter(each["status"] for each in records()) == EXPECTED


def test_ledger_contains_allowances(zoo: Path) -> None:
    found = opshift.convert_many("in/0", 17, "out", types="float=float16", allow="approximate")
    expected = [each.report and [list(pair) for pair in each.report.allowances] for each in found]
    assert expected
    assert all(expected)
    summaries: list[Any] = [each["report"] for each in records()]
    assert [each["allowances"] for each in summaries] == expected
    assert [each["concessions"] for each in summaries] == expected  # deprecated alias


def test_outcomes(zoo: Path) -> None:
    found = {Path(each.source).name: each for each in opshift.convert_many(["in"], "17", Path("out"))}
    converted, refused, broken = found["0.onnx"], found["refused.onnx"], found["broken.onnx"]
    assert converted.output == os.path.join("out", "0", "0.onnx")
    assert converted.report is not None
    assert [(each.source, each.target) for each in converted.report.opsets] == [(9, 17)]
    assert converted.source_digest != converted.output_digest
    assert refused.error is not None
    assert (refused.error.code, refused.error.error) == ("operator.not-introduced", "ConversionRefused")
    assert broken.error is not None
    assert (broken.error.error, broken.is_ok) == ("InvalidModel", False)
    for each in found.values():
        assert pickle.loads(pickle.dumps(each)) == each
        json.dumps(each.as_dict(), default=str)


def test_model_with_the_target_is_unchanged(zoo: Path) -> None:
    list(opshift.convert_many("in/0", 17, "new"))
    outcomes = list(opshift.convert_many("new/*.onnx", 17, "out"))
    assert {each.status for each in outcomes} == {"unchanged"}
    assert {each.status for each in opshift.convert_many("new/*.onnx", 17, "out")} == {"skipped"}


def test_later_call_does_nothing(zoo: Path) -> None:
    statuses()
    before = {path: os.stat(path) for path in Path("out").rglob("*")}
    again = list(opshift.convert_many("in", 17, "out", jobs=2))
    assert Counter(each.status for each in again) == {"skipped": 8, "refused": 1, "failed": 1}
    assert [each.from_ledger for each in again].count(True) == 9
    refused = next(each for each in again if each.status == "refused")
    assert refused.error is not None
    assert refused.error.code == "operator.not-introduced"
    after = {path: os.stat(path) for path in Path("out").rglob("*.onnx")}
    assert all(before[path] == found for path, found in after.items())
    assert len(records()) == 10


def touch(path: str) -> None:
    os.utime(path, (1, 1))


def edit_but_keep_time(path: str) -> None:
    found = os.stat(path)
    save(Path(path), fill=7.5)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


CHANGES: dict[str, tuple[Callable[[], object], list[str]]] = {
    "nothing": (lambda: None, []),
    "time of source": (lambda: touch("in/0/0.onnx"), []),
    "time of output": (lambda: touch("out/0/0.onnx"), []),
    "source": (lambda: save(Path("in/0/0.onnx"), fill=7.5), ["in/0/0.onnx"]),
    "source with former time": (lambda: edit_but_keep_time("in/0/0.onnx"), ["in/0/0.onnx"]),
    "output": (lambda: Path("out/0/0.onnx").write_bytes(b"edited"), ["in/0/0.onnx"]),
    "output with former time": (lambda: edit_but_keep_time("out/0/0.onnx"), ["in/0/0.onnx"]),
    "missing output": (lambda: os.remove("out/0/0.onnx"), ["in/0/0.onnx"]),
    "data file": (lambda: Path("in/d/w.bin").write_bytes(b"\0" * 24), ["in/d/d.onnx"]),
    "copy of data file": (lambda: Path("out/d/w.bin").write_bytes(b"\1" * 24), ["in/d/d.onnx"]),
    "new model": (lambda: save(Path("in/new.onnx")), ["in/new.onnx"]),
    "refused model": (lambda: save(Path("in/refused.onnx")), ["in/refused.onnx"]),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_converts_again_after_change(zoo: Path, change: Callable[[], object], expected: list[str]) -> None:
    save(Path("in/d/d.onnx"), data="w.bin")
    statuses()
    before = {path: path.read_bytes() for path in Path("out").rglob("*.onnx")}
    change()
    again = [each for each in opshift.convert_many("in", 17, "out") if not each.from_ledger]
    assert [each.source for each in again if each.status == "converted"] == expected
    assert [each.source for each in again if each.error] == ["in/broken.onnx"]
    unchanged = before.keys() - {Path("out", Path(each).relative_to("in")) for each in expected}
    assert all(path.read_bytes() == before[path] for path in unchanged)
    for each in expected:
        opshift.convert_file(each, "again.onnx", 17, external="keep")
        assert Path("out", Path(each).relative_to("in")).read_bytes() == Path("again.onnx").read_bytes()
    sources = [str(each["source"]) for each in records()]
    assert len(sources) == len(set(sources))


OPTIONS: dict[str, dict[str, object]] = {
    "target": {"target": 18},
    "IR version": {"ir_version": 10},
    "allow": {"allow": "approximate"},
    "reversible": {"reversible": True},
    "shapes": {"shapes": ["x=6"]},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_converts_again_with_other_options(zoo: Path, options: dict[str, object]) -> None:
    def run(target: object = 17, **rest: object) -> list[bool]:
        found = opshift.convert_many("in", target, "out", **rest)  # type: ignore[arg-type]
        return [each.from_ledger for each in found if each.status != "failed"]

    run()
    assert not any(run(**options))
    assert all(run(**options))
    assert not any(run())


def test_converts_again_with_other_version(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses()
    monkeypatch.setattr("opshift.batch.outcome.package_version", lambda: "99")
    assert statuses()["converted"] == 8


def test_equal_options_are_one(zoo: Path) -> None:
    list(opshift.convert_many("in", {"": 17}, "out"))
    assert statuses(force=True)["skipped"] == 8


def test_foreign_outputs_are_kept(zoo: Path) -> None:
    save(Path("out/0/0.onnx"), fill=99)
    mine = Path("out/0/0.onnx").read_bytes()
    assert statuses() == {"converted": 7, "refused": 1, "failed": 2}
    assert statuses() == {"skipped": 7, "refused": 1, "failed": 2}
    assert statuses(skip_existing=True) == {"skipped": 8, "refused": 1, "failed": 1}
    assert Path("out/0/0.onnx").read_bytes() == mine
    assert statuses(force=True) == {"converted": 1, "skipped": 7, "refused": 1, "failed": 1}
    assert opset(Path("out/0/0.onnx")) == 17


def test_ledger_elsewhere_and_other_working_folder(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses(ledger="logs/ledger.jsonl")
    assert not Path("out/opshift-ledger.jsonl").exists()
    monkeypatch.chdir("in")
    again = opshift.convert_many(".", 17, "../out", ledger=zoo / "logs" / "ledger.jsonl")
    assert Counter(each.status for each in again) == {"skipped": 8, "refused": 1, "failed": 1}


@pytest.mark.parametrize("garbage", [b'{"source": "in/0/0.on', b"{}\n", b'{"status": 3, "output": []}\n{"a'])
def test_torn_lines_are_ignored(zoo: Path, garbage: bytes) -> None:
    statuses()
    ledger = Path("out/opshift-ledger.jsonl")
    content = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(content[:-1]) + garbage)
    assert statuses()["converted"] <= 1
    assert Counter(each["status"] for each in records()) == EXPECTED


HOSTILE = {
    "no files": {"files": {}},
    "other files": {"files": {"/dev/null": ["", ""]}},
    "null character": {"files": {"\0": ["", ""]}},
    "wrong types": {"files": {"x": [1, 2]}},
    "list": {"files": []},
    "half of a pair": {"output": "\ud800"},
}


@pytest.mark.parametrize("fields", HOSTILE.values(), ids=HOSTILE)
def test_forged_entries_prove_nothing(zoo: Path, fields: dict[str, object]) -> None:
    statuses()
    forged = "".join(f"{json.dumps(each | fields)}\n" for each in records())
    Path("out/opshift-ledger.jsonl").write_text(forged)
    found = Counter(each.status for each in opshift.convert_many("in", 17, "out", force=True))
    assert found == EXPECTED


@pytest.mark.parametrize("content", [b"\x08\x07model", b"[]\n", b'{"input": "a"}\n', b"{\n"])
def test_refuses_file_that_is_not_a_ledger(zoo: Path, content: bytes) -> None:
    Path("mine").write_bytes(content)
    with pytest.raises(UsageError, match="is not a ledger"):
        statuses(ledger="mine")
    assert Path("mine").read_bytes() == content


@pytest.mark.parametrize("content", [b"", b'{"so', b'{"source": "a'])
def test_accepts_ledger_that_a_kill_cut_off(zoo: Path, content: bytes) -> None:
    Path("mine").write_bytes(content)
    assert statuses(ledger="mine") == EXPECTED


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
def test_refuses_second_run_with_ledger(zoo: Path) -> None:
    running = opshift.convert_many("in", 17, "out")
    next(running)
    with pytest.raises(UsageError, match="another run uses this ledger"):
        statuses()
    assert len(list(running)) == 9
    assert statuses()["skipped"] == 8


def test_stopped_iteration_is_continued(zoo: Path) -> None:
    for count in range(1, 5):
        running = opshift.convert_many("in/**/[0-9].onnx", 17, "out")
        for _ in range(count):
            next(running)
        running.close()
    assert statuses()["refused"] == 1
    assert len(records()) == 10


def test_finished_outputs_without_line_are_replaced(zoo: Path) -> None:
    """A run that is killed after it wrote an output may have not recorded the outcome."""
    statuses()
    started = [
        {
            "source": each["source"],
            "output": each["output"],
            "status": "started",
            "options": "",
            "owns_output": True,
        }
        for each in records()
    ]
    Path("out/opshift-ledger.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in started))
    assert statuses() == EXPECTED
    assert Counter(each["status"] for each in records()) == EXPECTED


def test_conflicts_beyond_the_first_models_fail_alone(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(Path("copy/0/0.onnx"), fill=55)
    with pytest.raises(UsageError, match="have the same output file"):
        opshift.convert_many(["in", "copy"], 17, "out")
    with pytest.raises(TypeError, match="unexpected keyword argument 'fould'"):
        statuses(fould=False)
    assert not Path("out").exists()
    monkeypatch.setattr("opshift.batch.convert_many.MODELS_BEFORE_START", 3)
    found = list(opshift.convert_many(["in", "copy"], 17, "out", jobs=2, force=True))
    (conflict,) = (each for each in found if each.source == "copy/0/0.onnx")
    assert conflict.error is not None
    assert "in/0/0.onnx and copy/0/0.onnx have the same output file" in conflict.error.reason
    opshift.convert_file("in/0/0.onnx", "again.onnx", 17)
    assert Path("out/0/0.onnx").read_bytes() == Path("again.onnx").read_bytes()


def test_error_of_listing_does_not_lose_results(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opshift.batch.convert_many.MODELS_BEFORE_START", 1)

    def models(*_: object) -> Iterator[FoundModel]:
        yield FoundModel("in/0/0.onnx", "0.onnx")
        yield FoundModel("in/1/1.onnx", "1.onnx")
        raise UsageError("cannot be listed")

    monkeypatch.setattr("opshift.batch.convert_many.find_models", models)
    monkeypatch.setattr("opshift.batch.run_chunks.FIRST_TASKS", 1)
    with pytest.raises(UsageError, match="cannot be listed"):
        list(opshift.convert_many("in", 17, "out", jobs=2))
    assert [each["status"] for each in records() if each["status"] == "converted"] == ["converted"] * 2


def test_sources_are_read_lazily(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opshift.batch.convert_many.MODELS_BEFORE_START", 2)
    named: list[str] = []

    def models(*_: object) -> Iterator[FoundModel]:
        for number in range(100):
            named.append(f"{number}.onnx")
            yield FoundModel(str(save(Path("many", named[-1]))), named[-1])

    monkeypatch.setattr("opshift.batch.convert_many.find_models", models)
    running = opshift.convert_many("many", 17, "out")
    next(running)
    assert len(named) == 2
    assert len(list(running)) == 99


class BrokenPool(Executor):
    """Executor that stops after a number of chunks."""

    def __init__(self, most: int) -> None:
        self.most = most

    def submit(self, function: Callable[..., object], /, *arguments: object, **named: object) -> Future[Any]:
        if self.most == 0:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self.most -= 1
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **named))
        return future


def test_broken_executor_is_an_error(zoo: Path) -> None:
    with pytest.raises(OpshiftError, match="the executor accepts no more work: cannot schedule new futures"):
        statuses(executor=BrokenPool(1), jobs=1)
    assert statuses()["skipped"] > 0
    assert Counter(each["status"] for each in records()) == EXPECTED


@pytest.mark.parametrize("types", [{"float": "double"}, "float=double", ["float=double"]])
def test_types_have_the_forms_of_single_models(zoo: Path, types: Any) -> None:
    assert statuses(types=types)["converted"] == statuses(types={"float": "double"}, force=True)["skipped"]


def test_wrong_and_wrong_arguments(zoo: Path) -> None:
    for target, sources in ((None, "in"), (99, "in"), (17, "none")):
        with pytest.raises(OpshiftError):
            opshift.convert_many(sources, target, "out")
    with pytest.raises(UsageError, match="is not a folder"):
        opshift.convert_many("in", 17, "in/broken.onnx")
    assert not Path("out").exists()
