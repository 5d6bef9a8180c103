"""The garbage collector, held back while many objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def collector_paused(work: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Collect nothing while a function runs: each collection would look through a plan that only grows.

    What is dropped without being part of a cycle is freed as ever. Where collection is off already,
    be it by the caller or by another thread in here, it stays off.
    """

    @wraps(work)
    def paused(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not gc.isenabled():
            return work(*args, **kwargs)
        gc.disable()
        try:
            return work(*args, **kwargs)
        finally:
            gc.enable()

    return paused
