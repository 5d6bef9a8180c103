"""How time and memory are taken: in turn, so that what slows the machine down slows all of them down."""

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
"""Processes find bytecode, as they do where packages are installed; what is run from its sources keeps it."""


class Cost(NamedTuple):
    """What a process took."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds, of the process and those that it started."""
    peak: float
    """MiB of memory at the highest."""


def in_turn(works: Sequence[Work], rounds: int) -> list[float]:
    """Median CPU seconds of each, all of them once in every round."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, times in zip(works, taken, strict=True):
            times.append(cpu(work))
    return [statistics.median(times) for times in taken]


def cpu(work: Work) -> float:
    """CPU seconds of one call, without what others left to clean up."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def processes_in_turn(commands: Sequence[Sequence[str]], out: Path, rounds: int) -> list[Cost]:
    """Median costs of commands that write the file `out`, all of them once in every round."""
    taken: list[list[Cost]] = [[] for _ in commands]
    for _ in range(rounds):
        for command, costs in zip(commands, taken, strict=True):
            out.unlink(missing_ok=True)
            os.sync()
            costs.append(process(command))
    out.unlink(missing_ok=True)
    return [Cost(*map(statistics.median, zip(*costs, strict=True))) for costs in taken]


def warm_up(commands: Sequence[Sequence[str]], out: Path) -> None:
    """Run each once: files are in memory then, and the memory that the commands take was in use before.

    A virtual machine gets its memory page by page from the host, when it is first used, and that is slower
    than to copy.
    """
    processes_in_turn(commands, out, 1)


def process(command: Sequence[str]) -> Cost:
    """Run a command by a process that does nothing else, and so knows what its only child took."""
    return Cost(*printed([sys.executable, "-I", "-S", str(HERE / "timed.py"), *command]))


def printed(command: Sequence[str]) -> tuple[float, ...]:
    """The numbers that a command prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=INSTALLED)
    return tuple(map(float, done.stdout.split()))
