"""Measurement of time and memory: jobs run in turn, so that a slowdown of the machine affects all of them."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

Work = Callable[[], object]
HERE = Path(__file__).parent
INSTALLED = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
"""Environment in which processes write and reuse bytecode, like those of installed packages."""


class Cost(NamedTuple):
    """Time and memory of a process."""

    wall: float
    """Elapsed seconds."""
    cpu: float
    """CPU seconds of the process and its child processes."""
    peak: float
    """Peak memory in MiB."""


def in_turn(works: Sequence[Work], rounds: int) -> list[float]:
    """Return the median CPU seconds of each job; every round runs all jobs once."""
    durations: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, times in zip(works, durations, strict=True):
            times.append(cpu(work))
    return [statistics.median(times) for times in durations]


def cpu(work: Work) -> float:
    """Return the CPU seconds of one call."""
    gc.collect()  # garbage of earlier calls does not count
    start = time.process_time()
    work()
    return time.process_time() - start


def processes_in_turn(commands: Sequence[Sequence[str]], out: Path, rounds: int) -> list[Cost]:
    """Return the median costs of commands that write the file `out`; every round runs all commands once."""
    results: list[list[Cost]] = [[] for _ in commands]
    for _ in range(rounds):
        for command, costs in zip(commands, results, strict=True):
            out.unlink(missing_ok=True)
            os.sync()  # pending writes of one command do not slow down the next
            costs.append(process(command))
    out.unlink(missing_ok=True)
    return [Cost(*map(statistics.median, zip(*costs, strict=True))) for costs in results]


def warm_up(commands: Sequence[Sequence[str]], out: Path) -> None:
    """Run each command once, so that files are cached and the machine has enough memory pages.

    The host provides the memory of a virtual machine page by page at the first use, which is slower than
    copying.
    """
    processes_in_turn(commands, out, 1)


def process(command: Sequence[str]) -> Cost:
    """Run a command as the only child of a small process, and return its cost."""
    return Cost(*printed([sys.executable, "-I", "-S", str(HERE / "timed.py"), *command]))


def printed(command: Sequence[str]) -> tuple[float, ...]:
    """Run a command and return the numbers that it prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=INSTALLED)
    return tuple(map(float, done.stdout.split()))
