"""Pause of the garbage collector while many long-lived objects are created."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def collector_paused(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Disable garbage collection while a function runs.

    A plan only grows, so each collection would traverse it without freeing anything. Objects outside of
    reference cycles are still freed at once. If collection is already disabled, by the caller or by another
    thread in a decorated function, it remains disabled.
    """

    @wraps(function)
    def paused(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return paused
