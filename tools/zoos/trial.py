"""Batch that is killed at random moments and resumed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

import psutil

from zoos.file_stores import FileStore
from zoos.s3_server import Request, Server

Workers = Callable[[psutil.Process], list[psutil.Process]]

POLL = 0.05


class Progress(NamedTuple):
    """Models that are written, and requests of the store to copy parts of large ones."""

    models: int = 0
    copies: int = 0


class Kill(NamedTuple):
    """Kill of the driver or of a worker after some progress."""

    victim: str
    after: Progress

    def is_due(self, progress: Progress) -> bool:
        """Return whether the moment has come."""
        return progress.models >= self.after.models and progress.copies >= self.after.copies


class Run(NamedTuple):
    """Run of the driver."""

    seconds: float
    exit_code: int
    peak_driver: int
    """Resident bytes."""
    peak_worker: int


def random_kills(count: int, models: int, seed: int, *, while_copying: bool) -> list[Kill]:
    """Return kills at random moments, of the driver and of workers in turn.

    Args:
        count: the number of kills.
        models: the number of models.
        seed: decides the moments.
        while_copying: whether to kill the first worker during a multipart upload.
    """
    random = Random(f"kills {seed}")
    victims = [("worker", "driver")[index % 2] for index in range(count)]
    kills = [Kill(victim, Progress(int(random.uniform(0.02, 0.9) * models))) for victim in victims]
    return [Kill("worker", Progress(copies=1)), *kills[1:]] if while_copying and kills else kills


class Trial:
    """Runs of one command until it ends by itself.

    Args:
        command: the command line of the batch.
        workers: the processes of the workers, without that of the driver.
        progress: yields the progress at each step.
        log: a file for what the command prints.
    """

    def __init__(
        self,
        command: Sequence[str],
        workers: Workers,
        progress: Iterator[Progress],
        log: Path,
    ) -> None:
        self._command = command
        self._workers = workers
        self._progress = progress
        self._log = log

    def run(self, waiting: list[Kill], seed: int) -> list[Run]:
        """Run the command again after each kill of its driver, and once more; kills leave the list.

        The last run converts models whose worker was killed each time, and proves the others.
        """
        random = Random(f"delays {seed}")
        runs = [self._run_until_kill(waiting, random)]
        while runs[-1].exit_code < 0:
            runs.append(self._run_until_kill(waiting, random))
        return [*runs, self._run_until_kill([], random)]

    def _run_until_kill(self, waiting: list[Kill], random: Random) -> Run:
        start = time.monotonic()
        peaks = {"driver": 0, "worker": 0}
        with self._log.open("a") as log:
            driver = psutil.Popen(self._command, stdout=log, stderr=log)
            while driver.poll() is None:
                time.sleep(POLL)
                processes = {"driver": [driver], "worker": self._workers(driver)}
                for kind, found in processes.items():
                    peaks[kind] = max([peaks[kind], *map(resident_bytes, found)])
                progress = next(self._progress)
                due = next((each for each in waiting if each.is_due(progress)), None)
                if due and processes[due.victim]:
                    time.sleep(random.uniform(0, 0.3))
                    victim = random.choice(processes[due.victim])
                    print(f"kills process {victim.pid}, a {due.victim}, after {progress}", flush=True)
                    waiting.remove(due)
                    with suppress(psutil.Error):  # it ended by itself
                        victim.kill()
        return Run(time.monotonic() - start, driver.returncode, peaks["driver"], peaks["worker"])


def resident_bytes(process: psutil.Process) -> int:
    """Return the memory of a process that is not swapped out; 0 if it ended."""
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def pool_workers(driver: psutil.Process) -> list[psutil.Process]:
    """Return the processes of a pool that the driver started."""
    try:
        children = driver.children(recursive=True)
        return [each for each in children if "spawn_main" in " ".join(each.cmdline())]
    except psutil.Error:
        return []


@contextmanager
def dask_cluster(workers: int) -> Iterator[tuple[str, Workers]]:
    """Run a cluster, and yield its address and a function that returns its workers."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster:

        def worker_processes(_: psutil.Process) -> list[psutil.Process]:
            found = []
            for nanny in cluster.workers.values():
                with suppress(psutil.Error, AttributeError):  # the nanny is starting a worker
                    found.append(psutil.Process(nanny.process.pid))
            return found

        yield cluster.scheduler_address, worker_processes


def convert_command(source: str, out: str, target: int, *options: str) -> list[str]:
    """Return the command that converts all models of a file store."""
    command = [sys.executable, "-m", "opshift", "convert", source, "--out", out, "--target", str(target)]
    return [*command, "--format", "json", *options]


def count_files(out: FileStore) -> Iterator[Progress]:
    """Yield the number of models that a folder has at each step."""
    while True:
        yield Progress(sum(path.endswith(".onnx") for path in out.paths()))


def count_requests(server: Server) -> Iterator[Progress]:
    """Yield the number of models that were written to a server since the first step."""
    models = copies = 0
    rest = b""
    with server.log.open("rb") as log:
        log.seek(0, 2)
        while True:
            *lines, rest = (rest + log.read()).split(b"\n")  # the last line may be incomplete
            for line in lines:
                request = Request(*json.loads(line))
                models += request.path.endswith(".onnx") and request.writes
                copies += request.kind == "UploadPartCopy"
            yield Progress(models, copies)
