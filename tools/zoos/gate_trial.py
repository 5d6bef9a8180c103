"""Run of a command over many models: time to the first result, memory, interruption and resumption."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any, NamedTuple

import psutil

from zoos.trial import resident_bytes

MOST_MEMORY = 300_000_000
MOST_GROWTH = 30_000_000
"""Bytes by which the memory may grow after the first quarter of the models."""
SAMPLES = 20
"""Number of lines between two measurements of the memory."""
OUTCOMES = {"convertible": "converted", "unchanged": "converted", "refused": "refused", "failed": "broken"}
"""Expected outcome of a generated model, by the result of the command."""


class GateRun(NamedTuple):
    """Run of the command."""

    results: dict[str, str]
    """Result of each model, by its path below the folder."""
    summary: dict[str, Any]
    exit_code: int
    first: float
    """Seconds to the first result."""
    seconds: float
    memory: tuple[int, ...]
    """Resident bytes during the run."""

    def figures(self) -> dict[str, object]:
        """Return the measured values."""
        return {
            "models": len(self.results),
            "first result after seconds": round(self.first, 2),
            "seconds": round(self.seconds, 2),
            "peak memory": max(self.memory),
            "growth after a quarter": growth(self.memory),
            "results": self.summary.get("results"),
            "exit code": self.exit_code,
        }


def growth(memory: Sequence[int]) -> int:
    """Return by how much the memory grew after the first quarter of the measurements."""
    quarter = len(memory) // 4 + 1
    return max(memory) - max(memory[:quarter])


def run_plan(folder: Path, target: int, options: Sequence[str] = (), stop_after: int = 0) -> GateRun:
    """Run `opshift plan` with JSON Lines; interrupt it after some results, if requested."""
    start = time.monotonic()
    command = [sys.executable, "-m", "opshift", "plan", str(folder), "--target", str(target)]
    process = psutil.Popen([*command, "--format", "json", *options], stdout=PIPE, text=True)
    first, memory = 0.0, [0]
    results: dict[str, str] = {}
    summary: dict[str, Any] = {}
    for number, text in enumerate(process.stdout):
        first = first or time.monotonic() - start
        if number % SAMPLES == 0:
            memory.append(resident_bytes(process))
        found = json.loads(text)
        if "summary" in found:
            summary = found["summary"]
        else:
            results[os.path.relpath(found["input"], folder)] = found["result"]
        if number + 1 == stop_after:
            process.send_signal(signal.SIGINT)
    code = process.wait()
    return GateRun(results, summary, code, first, time.monotonic() - start, tuple(memory))


def gate_problems(whole: GateRun, expected: dict[str, str], longest_wait: float) -> Iterator[str]:
    """Yield differences between a run and the expected outcomes, and the limits that it exceeds.

    `longest_wait` is the maximum time to the first result, in seconds.
    """
    found = {path: OUTCOMES.get(result) for path, result in whole.results.items()}
    if found != expected:
        differing = sorted(path for path in expected | found if found.get(path) != expected.get(path))
        yield f"{len(differing)} results differ from the manifest, first {differing[:3]}"
    if whole.first > longest_wait:
        yield f"the first result arrives after {whole.first:.1f} s"
    if max(whole.memory) > MOST_MEMORY:
        yield f"the memory reaches {max(whole.memory)} bytes"
    if growth(whole.memory) > MOST_GROWTH:
        yield f"the memory grows by {growth(whole.memory)} bytes"


def resumption_problems(whole: GateRun, stopped: GateRun, resumed: GateRun) -> Iterator[str]:
    """Yield problems of a run that was interrupted, and of the next run with the same ledger."""
    if not stopped.summary.get("interrupted") or stopped.exit_code != 128 + signal.SIGINT:
        yield f"the interrupted run ends with {stopped.exit_code} and the summary {stopped.summary}"
    if len(stopped.results) >= len(whole.results):
        yield "the interruption does not end the run"
    if resumed.results != whole.results:
        yield "the resumed run has other results than the whole run"
