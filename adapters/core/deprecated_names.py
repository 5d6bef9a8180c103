"""Deprecated names of methods of `Rewriter`."""

import warnings
from collections.abc import Callable
from typing import ParamSpec

Parameters = ParamSpec("Parameters")


def renamed(method: Callable[Parameters, None], old: str) -> Callable[Parameters, None]:
    """Return the deprecated alias `old` of a method."""

    def alias(*arguments: Parameters.args, **options: Parameters.kwargs) -> None:
        message = f"Rewriter.{old} is deprecated and will be removed: call {method.__name__}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        method(*arguments, **options)

    return alias
