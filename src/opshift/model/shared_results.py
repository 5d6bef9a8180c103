"""Cache of a function that returns one object per key to all threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Protocol, TypeVar, TypeVarTuple, cast

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")
SharedResult = TypeVar("SharedResult", covariant=True)


class CachedFunction(Protocol[*Arguments, SharedResult]):
    """Function with a cache of its results."""

    def __call__(self, *args: *Arguments) -> SharedResult:
        """Return the result for some arguments."""
        ...

    @property
    def __wrapped__(self) -> Callable[[*Arguments], SharedResult]:
        """The function without a cache."""
        ...

    def cache_clear(self) -> None:
        """Forget all results."""


def share_results(function: Callable[[*Arguments], Result]) -> CachedFunction[*Arguments, Result]:
    """Cache the results of a function, so that all threads get the same object for the same arguments.

    `functools.cache` returns different objects to threads that call at the same time. This may also compute
    a result more than once, but every caller gets the first one. It holds no lock: functions that import
    modules or call private code under a lock can deadlock with Python's import locks.
    """
    results: dict[tuple[*Arguments], Result] = {}

    @wraps(function)
    def cached(*args: *Arguments) -> Result:
        try:
            return results[args]
        except KeyError:
            pass  # outside of the block, so that errors of the function have no other context
        return results.setdefault(args, function(*args))

    vars(cached)["cache_clear"] = results.clear
    return cast("CachedFunction[*Arguments, Result]", cached)
