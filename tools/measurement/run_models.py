"""Run models in a process that may crash, hang or grow."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import numpy as np

from measurement.worker import without_objects

WORKER = Path(__file__).parent / "worker.py"

SECONDS = 20.0
"""Maximum duration of a model in seconds."""

START_SECONDS = 600.0
"""Maximum duration of the import of a runtime in seconds."""

POLL_SECONDS = 0.5
"""Interval in seconds between checks of whether a process still runs."""

QUIET = {"RUST_BACKTRACE": "0", "RUST_LIB_BACKTRACE": "0"}
"""Environment variables that shorten error messages."""


def loader_of(runtime: str) -> Path:
    """Return the path of the loader of a runtime."""
    return WORKER.parent / "loaders" / f"load_{runtime}.py"


class Outcome(NamedTuple):
    """Outcome of a model, and the error message.

    `outcome` is `refused`, `loads`, `fails`, `runs`, `differs`, `equal`, `crashes` or `hangs`.
    """

    outcome: str
    error: str = ""

    @property
    def loads(self) -> bool:
        """Return whether the runtime loaded the model."""
        return self.outcome in ("loads", "equal", "differs", "fails", "runs")


class Worker:
    """Process that runs one model at a time; a new process replaces one that a model ended."""

    def __init__(
        self, python: str, loader: Path, seconds: float = SECONDS, folders: Sequence[Path] = ()
    ) -> None:
        """Start a process; `folders` are first in its module search path."""
        self._environment = {**os.environ, **QUIET}
        if folders:
            self._environment["PYTHONPATH"] = os.pathsep.join(map(str, folders))
        self._command = [python, str(WORKER), str(loader)]
        self._seconds = seconds
        self._folder = tempfile.TemporaryDirectory()
        self._start_process()

    def _start_process(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
            start_new_session=True,
        )
        if self._read_line(START_SECONDS) != "ready":
            self.close()
            raise RuntimeError(f"{' '.join(self._command)} does not start; run it to see why")

    def _read_line(self, seconds: float) -> str | None:
        """Return the next line; `""` if the process ended, `None` if it takes too long."""
        assert self._process.stdout is not None
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ready, _, _ = select.select([self._process.stdout], [], [], POLL_SECONDS)
            if ready:
                return self._process.stdout.readline().decode().strip()
            if self._process.poll() is not None:
                # A child process of the runtime may keep the pipe open.
                return ""
        return None

    def run(self, model: bytes, values: Mapping[str, Any]) -> Outcome:
        """Load a model, and run it if there are inputs `in.NAME` and expected outputs `out.NUMBER`."""
        outcome = self._run_model(model, values)
        # An earlier model may have damaged the process: run the model in a new one.
        return outcome if outcome.outcome != "crashes" else self._run_model(model, values)

    def outputs(self, model: bytes, feeds: Mapping[str, Any]) -> tuple[Outcome, list[Any]]:
        """Run a model, and return its outputs; empty unless the outcome is `runs`."""
        values = {f"in.{name}": without_objects(each) for name, each in feeds.items()}
        outcome = self.run(model, {**values, "keep": np.array(True)})
        if outcome.outcome != "runs":
            return outcome, []
        with np.load(Path(self._folder.name, "model.outputs.npz")) as arrays:
            return outcome, [arrays[name] for name in arrays.files]

    def _run_model(self, model: bytes, values: Mapping[str, Any]) -> Outcome:
        path = Path(self._folder.name, "model.onnx")
        path.write_bytes(model)
        path.with_suffix(".npz").unlink(missing_ok=True)
        if values:
            np.savez(path.with_suffix(".npz"), **values)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{path}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            # the previous model ended the process after it wrote its result
            self._end_process()
            self._start_process()
            return self._run_model(model, values)
        line = self._read_line(self._seconds)
        if line:
            return Outcome(*json.loads(line))
        self._end_process()
        code = self._process.returncode
        self._start_process()
        if line is None:
            return Outcome("hangs", f"no result within {self._seconds:g} seconds")
        return Outcome("crashes", f"the process ended with exit code {code}")

    def _end_process(self) -> None:
        """End the process and its child processes, which keep its pipes open."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in filter(None, (self._process.stdin, self._process.stdout)):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def close(self) -> None:
        """End the process."""
        self._end_process()
        self._folder.cleanup()


class Results:
    """Outcomes of models by key, stored in a file so that a later run can continue."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._known: dict[str, Outcome] = {}
        if path.exists():
            for line in path.read_text("utf-8").splitlines():
                key, *outcome = json.loads(line)
                self._known[key] = Outcome(*outcome)
        self._path = path

    def measure(
        self, models: Iterable[tuple[str, bytes, Mapping[str, Any]]], workers: Sequence[Worker]
    ) -> list[Outcome]:
        """Return the outcome of each model, given with its key and values."""
        free: Queue[Worker] = Queue()
        for each in workers:
            free.put(each)

        def measure_one(key: str, model: bytes, values: Mapping[str, Any]) -> Outcome:
            if key not in self._known:
                worker = free.get()
                try:
                    self._known[key] = worker.run(model, values)
                finally:
                    free.put(worker)
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, *self._known[key]]) + "\n")
            return self._known[key]

        with ThreadPoolExecutor(len(workers)) as pool:
            return list(pool.map(measure_one, *zip(*models, strict=True)))
