"""Limit the time and the memory of a block."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deadline(seconds: int, mebibytes: int) -> Iterator[None]:
    """Raise TimeoutError after some seconds of CPU time, and AssertionError if the peak memory grows more."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"not finished after {seconds} s of CPU time")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    assert grown < mebibytes, f"the peak memory grew by {grown} MiB"
