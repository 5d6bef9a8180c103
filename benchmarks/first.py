"""Print the CPU seconds of the first conversion in a process: `python first.py ROUNDS [MODEL TARGET]...`.

For each model and target, this prints the median of opshift and that of ONNX's converter. Each conversion
runs in a fork of a process that has imported both converters, but has not converted a model.
"""

from __future__ import annotations

import statistics
import sys
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection

import onnx

from jobs import JOBS, OURS, THEIRS
from measuring import cpu

FORK = get_context("fork")


def main() -> None:
    """Measure each model with both converters."""
    rounds, *cases = sys.argv[1:]
    for path, target in zip(cases[::2], cases[1::2], strict=True):
        model = onnx.load(path)
        for job in (OURS, THEIRS):
            work = partial(JOBS[job], model, int(target))
            print(statistics.median(_in_fork(work) for _ in range(int(rounds))))


def _in_fork(work: partial[object]) -> float:
    receiver, sender = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_measure, args=(work, sender))
    process.start()
    sender.close()  # a child that fails then ends the wait below with EOFError
    duration: float = receiver.recv()
    process.join()
    return duration


def _measure(work: partial[object], sender: Connection) -> None:
    sender.send(cpu(work))


if __name__ == "__main__":
    main()
