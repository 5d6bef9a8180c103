"""Run tasks in chunks, because sending a small task to a worker costs more than running the task."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from itertools import islice
from typing import Generic, TypeVar

from opshift.batch.errors import WorkersNotStarted
from opshift.model.errors import OpshiftError

Task = TypeVar("Task")
Result = TypeVar("Result")

CHUNK_SECONDS = 1.0
"""Seconds after which a worker returns a chunk without starting its remaining tasks."""

MAX_TASKS = 1_000
"""Maximum number of tasks in a chunk."""

FIRST_TASKS = 4
"""Number of tasks in the first chunks, before the time of a task is known; results should arrive soon."""

CHUNKS_IN_FLIGHT = 32
"""Number of chunks that an executor of unknown size gets at a time."""


WORKER_LOST = "WorkerLost"
"""`ModelError.error` for the outcome of a `LostTask`."""


class LostTask(str):
    """Error text, as the result of a task that failed in its own chunk, usually because its worker ended."""

    def as_error(self, place: str) -> OpshiftError:
        """Return the error for a result of the task; `place` is the model."""
        reason = f"the worker that read the model failed: {self}"
        return OpshiftError(reason, place=place, remedy="if its memory was exhausted, use fewer workers")


Done = list[tuple[Task, Result | LostTask]]
"""Tasks of a chunk with their results."""


def run_chunks(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    jobs: int | None = None,
    executor: Executor | None = None,
    on_error: Callable[[Sequence[Task], BaseException], None] = lambda *_: None,
) -> Generator[Done[Task, Result]]:
    """Yield tasks with their results, chunk by chunk; read `tasks` only as fast as workers need them.

    If a chunk of several tasks fails, each task runs again in its own chunk, so that only the failing task is
    lost.

    Args:
        function: computes the result of a task. It must be importable by workers, and must not raise errors.
        tasks: arguments of the function.
        jobs: number of chunks that run at a time, 32 by default; without an executor, the number of processes
            to start, where 1 and `None` run the tasks in this process.
        executor: runs the chunks, with its own retries and limits.
        on_error: called with the tasks of a chunk that failed as a whole, and the error.

    Raises:
        OpshiftError: the executor is broken or shut down.
        WorkersNotStarted: processes end when they start, as in a script without a main guard.
    """
    if executor is not None:
        yield from _run(executor, function, _Chunks(tasks), jobs or CHUNKS_IN_FLIGHT, on_error)
    elif jobs is not None and jobs > 1:
        # imported here: slow to import, and not needed for a single process
        from opshift.batch.worker_processes import WorkerProcesses

        with WorkerProcesses(jobs) as processes:
            yield from _run(processes, function, _Chunks(tasks), jobs, on_error)
    else:
        for task in tasks:
            yield [(task, function(task))]


def _run(
    executor: Executor,
    function: Callable[[Task], Result],
    chunks: _Chunks[Task],
    most: int,
    on_error: Callable[[Sequence[Task], BaseException], None],
) -> Generator[Done[Task, Result]]:
    """Submit chunks while at most `most` run, and yield the results as they arrive."""
    running: dict[Future[tuple[list[Result], float]], Sequence[Task]] = {}
    done = Done[Task, Result]()
    failure: Exception | None = None
    try:
        while True:
            failure = failure or _submit_until(most, running, executor, function, chunks)
            if done:  # yielded after the workers have received new tasks
                yield done
            if not running:
                break
            done = Done[Task, Result]()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                chunk = running.pop(future)
                if (problem := future.exception()) is None:
                    done += chunks.finish(chunk, *future.result())
                elif isinstance(problem, WorkersNotStarted):
                    failure = problem
                else:
                    on_error(chunk, problem)
                    done += chunks.lose(chunk, problem)
    finally:
        for future in running:
            future.cancel()
    if failure is not None:  # raised after the results of the running chunks are yielded
        raise failure


def _submit_until(
    most: int,
    running: dict[Future[tuple[list[Result], float]], Sequence[Task]],
    executor: Executor,
    function: Callable[[Task], Result],
    chunks: _Chunks[Task],
) -> Exception | None:
    """Submit chunks until `most` are running; return the error of a failed submission, or `None`."""
    try:
        while len(running) < most and (chunk := chunks.take()):
            running[_submit(executor, function, chunk)] = chunk
    except Exception as error:
        return error
    return None


def _submit(
    executor: Executor, function: Callable[[Task], Result], chunk: Sequence[Task]
) -> Future[tuple[list[Result], float]]:
    try:
        return executor.submit(_run_chunk, function, chunk)
    except RuntimeError as error:  # the executor is broken or was shut down
        reason = f"the executor accepts no more work: {error}"
        raise OpshiftError(reason, remedy="continue with a new executor, or with jobs=2") from error


def _run_chunk(function: Callable[[Task], Result], chunk: Sequence[Task]) -> tuple[list[Result], float]:
    """Run tasks until `CHUNK_SECONDS` have passed; return their results and the seconds that they took."""
    start, seconds, results = time.perf_counter(), 0.0, list[Result]()
    for task in chunk:
        results.append(function(task))
        seconds = time.perf_counter() - start
        if seconds > CHUNK_SECONDS:
            break
    return results, seconds


class _Chunks(Generic[Task]):
    """Tasks in chunks of about `CHUNK_SECONDS`, estimated from the time of earlier chunks."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks = iter(tasks)
        self._returned = deque[Task]()
        self._alone = deque[Task]()
        self._count = FIRST_TASKS

    def take(self) -> Sequence[Task]:
        """Return the next chunk; it is empty if there are no more tasks."""
        if self._alone:
            return [self._alone.popleft()]
        count = min(self._count, len(self._returned))
        chunk = [self._returned.popleft() for _ in range(count)]
        return [*chunk, *islice(self._tasks, self._count - count)]

    def finish(self, chunk: Sequence[Task], results: Sequence[Result], seconds: float) -> Done[Task, Result]:
        """Return the finished tasks of a chunk with their results; keep the other tasks for later chunks."""
        self._returned += chunk[len(results) :]
        expected = len(results) * CHUNK_SECONDS / max(seconds, CHUNK_SECONDS / MAX_TASKS)
        self._count = max(1, min(round(expected), 2 * self._count, MAX_TASKS))
        return list(zip(chunk, results, strict=False))

    def lose(self, chunk: Sequence[Task], problem: BaseException) -> Done[Task, Result]:
        """Return the only task of a failed chunk as lost; put each of several tasks into its own chunk."""
        if len(chunk) == 1:
            return [(chunk[0], LostTask(problem))]
        self._alone += chunk
        return []
