"""Tasks in chunks; workers that die or are killed lose only the task that ends them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from multiprocessing import active_children

import pytest

from opshift.batch.run_chunks import Done, LostTask, run_chunks
from opshift.model.errors import OpshiftError


def convert_or_die(task: str) -> str:
    if task.startswith("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    if task.startswith("exit"):
        os._exit(3)
    return task.upper()


def flat(chunks: object) -> dict[object, object]:
    return dict(pair for chunk in chunks for pair in chunk)  # type: ignore[attr-defined]


@pytest.mark.full
@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals")
@pytest.mark.parametrize("jobs", [2, pytest.param(5, marks=pytest.mark.full)])
def test_dead_worker_costs_one_task(jobs: int) -> None:
    tasks = ["a", "kill 1", "b", "exit 1", "c", "kill 2", "d", "e", "f"]
    errors: list[Sequence[str]] = []
    chunks = run_chunks(convert_or_die, tasks, jobs=jobs, on_error=lambda chunk, _: errors.append(chunk))
    found = flat(chunks)
    assert found.keys() == set(tasks)
    lost = {task for task, result in found.items() if isinstance(result, LostTask)}
    assert lost == {"kill 1", "kill 2", "exit 1"}
    assert {found[name] for name in "abcdef"} == set("ABCDEF")
    assert (found["kill 1"], found["exit 1"]) == ("Killed", "exit code 3")
    assert {"kill 1", "kill 2", "exit 1"} <= {task for chunk in errors for task in chunk}
    assert not active_children()


def test_stopped_iteration_ends_workers() -> None:
    running = run_chunks(sleep, [0.01] * 4 + [60.0] * 20, jobs=2)
    next(running)
    assert len(active_children()) == 2
    start = time.monotonic()
    running.close()
    assert time.monotonic() - start < 50
    assert not active_children()


def sleep(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


class Recorder(Executor):
    """Executor that runs at once and records the chunks."""

    def __init__(self) -> None:
        self.chunks: list[list[float]] = []
        self.seconds: list[float] = []

    def submit(self, function: Callable[..., object], /, *arguments: object, **_: object) -> Future[object]:  # type: ignore[override]
        self.chunks.append(list(arguments[1]))  # type: ignore[call-overload]
        future: Future[object] = Future()
        try:
            result = function(*arguments)
            self.seconds.append(result[1])  # type: ignore[index]
            future.set_result(result)
        except Exception as error:
            future.set_exception(error)
        return future


def test_chunks_take_about_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    def work(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr("opshift.batch.run_chunks.time.perf_counter", lambda: clock[0])
    recorder = Recorder()
    tasks = [0.01] * 2_000 + [1.5] * 20 + [0.01] * 2_000
    assert len(flat(run_chunks(work, tasks, executor=recorder, jobs=1))) == 2
    assert len(recorder.chunks[0]) <= 5
    assert clock[0] == pytest.approx(sum(tasks))
    assert len(recorder.chunks) < 90
    assert max(recorder.seconds) < 2.6


def fail_in_chunk(task: int) -> int:
    if task == 3:
        raise RuntimeError("worker was evicted")
    return task


def test_chunk_that_an_executor_loses_is_repeated_one_by_one() -> None:
    found = flat(run_chunks(fail_in_chunk, range(6), executor=Recorder(), jobs=1))
    expected: dict[object, object] = {task: task for task in range(6)}
    assert found == expected | {3: LostTask("worker was evicted")}


def test_tasks_are_read_as_they_are_needed() -> None:
    read: list[int] = []

    def tasks() -> object:
        for number in range(1000):
            read.append(number)
            yield number

    for jobs in (1, 2):
        read.clear()
        running = run_chunks(abs, tasks(), jobs=jobs)  # type: ignore[var-annotated, arg-type]
        next(running)
        assert len(read) < 200
        running.close()


def test_executor_that_refuses_tasks_is_an_error() -> None:
    class Closed(Executor):
        def submit(self, *_: object, **__: object) -> Future[object]:  # type: ignore[override]
            raise RuntimeError("cannot schedule new futures after shutdown")

    with pytest.raises(OpshiftError, match="accepts no more work: cannot schedule"):
        list[Done[int, int]](run_chunks(abs, [1, 2], executor=Closed()))
