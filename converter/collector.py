"""The garbage collector, held back while many objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Collect nothing meanwhile: each collection would look through a plan that only grows.

    What is dropped without being part of a cycle is freed as ever. Where collection is off already,
    be it by the caller or by another thread in here, it stays off.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
