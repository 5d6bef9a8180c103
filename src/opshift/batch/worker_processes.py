"""Executor whose processes run one task at a time: if a process ends, only its task is lost."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from typing import ParamSpec, TypeVar

from opshift.batch.errors import WorkersNotStarted
from opshift.model.process_state import exit_on_signals, signals_deferred

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

SECONDS_TO_END = 10.0
"""Seconds that a worker gets to end and to remove its temporary files before it is killed."""


class WorkerLost(Exception):
    """The process of a worker ended before its task was done.

    Attributes:
        process: the process id.
        exit_code: the exit code, or the negative number of a signal; `None` if the process still runs.
    """

    def __init__(self, process: int, exit_code: int | None) -> None:
        self.process, self.exit_code = process, exit_code
        super().__init__(process, exit_code)

    def __str__(self) -> str:
        if self.exit_code is None or self.exit_code >= 0:
            return f"exit code {self.exit_code}"
        return signal.strsignal(-self.exit_code) or f"signal {-self.exit_code}"


class WorkerProcesses(Executor):
    """Executor with one process per concurrent task; new processes replace those that end.

    `ProcessPoolExecutor` breaks when one process ends, and its processes outlive a killed parent process.
    The function must be importable, and must not raise errors.

    If a process ends before any process could accept a call, the future raises WorkersNotStarted.
    """

    def __init__(self, count: int) -> None:
        self._has_started = False
        # one thread per process, which waits for the results of the process
        self._threads = ThreadPoolExecutor(count)
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()

    def submit(
        self, function: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Future[Result]:
        """Run a function in a process; the future raises WorkerLost if the process ends.

        The caller must not have more unfinished calls than processes.
        """
        worker = self._idle.pop() if self._idle else _Worker()
        self._busy.add(worker)
        return self._threads.submit(self._run, worker, partial(function, *args, **kwargs))

    def _run(self, worker: _Worker, call: Callable[[], Result]) -> Result:
        try:
            worker.wait_until_started()
            self._has_started = True
            result = worker.run(call)
        except WorkerLost as error:
            worker.stop()
            if not self._has_started:
                raise _not_started(error) from None
            raise
        else:
            self._idle.append(worker)
            return result
        finally:
            self._busy.discard(worker)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes; terminate processes that run a task."""
        self._threads.shutdown(wait=False, cancel_futures=cancel_futures)
        busy = list(self._busy)
        for each in busy:
            each.process.terminate()
        for each in busy:
            each.end()
        self._threads.shutdown(wait)
        for each in self._idle:
            each.stop()


def _not_started(error: WorkerLost) -> WorkersNotStarted:
    reason = f"the processes for jobs=2 or more end when they start: {error}"
    # each process imports the script, which would start the conversion of the models again
    remedy = (
        'call convert_many below `if __name__ == "__main__":` in a script that is a file, or pass jobs=1; '
        "errors of the processes are on stderr"
    )
    return WorkersNotStarted(reason, remedy=remedy)


class _Worker:
    """Process that runs calls one after the other."""

    def __init__(self) -> None:
        # not "fork": a forked process would inherit locks that threads of this process hold
        context = get_context("spawn")
        self._connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other,), daemon=True)
        # If a signal ended this process during the start, the new process would print a traceback.
        with signals_deferred(), _interrupts_blocked():
            self.process.start()
        # Only the process keeps this end of the connection: when it ends, the connection closes.
        other.close()
        self._is_started = False

    def wait_until_started(self) -> None:
        """Wait until the process has imported the main module and can accept calls."""
        if not self._is_started:
            with self._reporting_end():
                self._connection.recv()
            self._is_started = True

    def run(self, call: Callable[[], Result]) -> Result:
        with self._reporting_end():
            self._connection.send(call)
            result: Result = self._connection.recv()
        return result

    @contextmanager
    def _reporting_end(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError):
            self.process.join(SECONDS_TO_END)
            raise WorkerLost(self.process.pid or 0, self.process.exitcode) from None

    def stop(self) -> None:
        """End a worker that has no task."""
        # a closed connection ends the worker; a signal could interrupt its exit handlers
        self._connection.close()
        self.end()

    def end(self) -> None:
        """Wait for the end of the process, and kill it if it takes too long."""
        self.process.join(SECONDS_TO_END)
        self.process.kill()
        self.process.join()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl+C in this process, and in processes that start in this block, which cannot handle it yet.

    If Ctrl+C arrives in the block, it interrupts this process at the end of the block.
    """
    if sys.platform == "win32":
        yield
        return
    # Otherwise, starting the resource tracker in the block would unblock the signal.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection[object, Callable[[], object]]) -> None:
    """Run the calls that the parent process sends, and send back the results, until the parent ends."""
    # Ctrl+C reaches all processes of a terminal; the parent process receives it, too, and ends the workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    exit_on_signals()
    with suppress(EOFError, OSError):  # the parent process ended
        connection.send(None)  # the main module was imported without an error
        while True:
            connection.send(connection.recv()())
