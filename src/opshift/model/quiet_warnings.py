"""Blocks of code without warnings, in any number of threads."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from threading import Lock
from typing import Final


class _Silence:
    """Filter of the process that ignores warnings while at least one block runs."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._blocks = 0
        self._saved: AbstractContextManager[object] | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._blocks == 0:
                self._saved = warnings.catch_warnings(action="ignore")
                self._saved.__enter__()
            self._blocks += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0 and self._saved is not None:
                self._saved.__exit__(None, None, None)


WARNINGS_IGNORED: Final = _Silence()
"""Context manager that ignores warnings, as `catch_warnings` does. That one is not safe in threads: where two
of its blocks overlap, the one that ends last restores the filter of the other and silences the process."""
