"""Worker processes, each of which runs one task at a time."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Generic, NamedTuple, TypeVar

from opshift.model.signals import exit_on_termination

Task = TypeVar("Task")
Result = TypeVar("Result")

SECONDS_TO_END = 10.0
"""Time that a worker gets to end, and to remove its temporary files, before it is killed."""


class Lost(NamedTuple):
    """End of a worker before its task was done: the number of the process, and its exit code."""

    process: int
    exit_code: int | None

    def __str__(self) -> str:
        if self.exit_code is None or self.exit_code >= 0:
            return f"exit code {self.exit_code}"
        return signal.strsignal(-self.exit_code) or f"signal {-self.exit_code}"


def run_in_workers(
    function: Callable[[Task], Result], groups: Iterable[list[Task]], count: int
) -> Iterator[tuple[Task, Result | Lost]]:
    """Yield each task with its result, in the order in which they are done.

    The tasks of a group run one after the other. The end of a worker costs only the task that it runs.
    """
    remaining = map(deque, groups)  # lazily: there may be millions
    unfinished: list[deque[Task]] = []

    def next_tasks() -> deque[Task]:
        return unfinished.pop() if unfinished else next(remaining, deque())

    workers: dict[object, _Worker[Task, Result]] = {}
    try:
        while True:
            while len(workers) < count and (tasks := next_tasks()):
                started = _Worker(function, tasks)
                workers[started.connection] = started
            if not workers:
                return
            for ready in wait([each.connection for each in workers.values()]):
                worker = workers[ready]
                task, result = worker.finish_task()
                if isinstance(result, Lost):
                    unfinished += filter(None, [worker.tasks])
                else:
                    worker.tasks = worker.tasks or next_tasks()
                if isinstance(result, Lost) or not worker.tasks:
                    del workers[ready]
                    worker.stop()
                else:
                    worker.start_task()
                yield task, result
    finally:
        for each in workers.values():
            each.process.terminate()
        for each in workers.values():
            each.stop()


class _Worker(Generic[Task, Result]):
    """Worker process that runs the first of its tasks."""

    def __init__(self, function: Callable[[Task], Result], tasks: deque[Task]) -> None:
        self.tasks = tasks
        # not fork: the thread of the progress bar may hold locks
        context = get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, function), daemon=True)
        self.process.start()
        other.close()  # so that the end of the process closes the connection
        self.start_task()

    def start_task(self) -> None:
        with suppress(OSError):  # the worker ended; `finish_task` reports it
            self.connection.send(self.tasks[0])

    def finish_task(self) -> tuple[Task, Result | Lost]:
        task = self.tasks.popleft()
        try:
            result: Result = self.connection.recv()
        except (EOFError, OSError):
            self.process.join(SECONDS_TO_END)
            return task, Lost(self.process.pid or 0, self.process.exitcode)
        return task, result

    def stop(self) -> None:
        """Wait for the end of a worker that has no task, or was terminated."""
        self.connection.close()  # the worker ends by itself: a signal could interrupt its exit handlers
        self.process.join(SECONDS_TO_END)
        self.process.kill()
        self.process.join()


def _work(connection: Connection[object, Task], function: Callable[[Task], object]) -> None:
    # Ctrl+C reaches all processes of a terminal; the first process then ends the workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    exit_on_termination()
    with suppress(EOFError, OSError):  # the first process ended
        while True:
            connection.send(function(connection.recv()))
