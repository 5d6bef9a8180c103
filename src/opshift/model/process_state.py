"""State of the process: blocks of code without signals or without warnings, and an orderly exit."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from threading import Lock
from types import FrameType
from typing import Final

SIGNALS = tuple(signal.valid_signals())

RETRY_SECONDS = 0.01
"""Delay in seconds before an exit is tried again, to let a running destructor or class creation end."""


DEFAULT_HANDLERS = {
    "SIGINT": signal.default_int_handler,
    "SIGTERM": signal.SIG_DFL,
    "SIGHUP": signal.SIG_DFL,
}
"""Signals that end a process, by name, and their handlers when Python starts."""


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Run a block to its end, and then the handlers of the signals that arrived in the meantime.

    A handler may raise, as the default handler of SIGINT does, and leave an object half modified. Python runs
    handlers in the main thread only, so a block in another thread needs no protection.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def record(number: int, _: FrameType | None) -> None:
        arrived.append(number)

    handlers: dict[int, signal._HANDLER] = {}
    try:
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                handlers[number] = handler
                signal.signal(number, record)
        yield
    finally:
        _restore_handlers(handlers)
        for missed in arrived:
            signal.raise_signal(missed)


def _restore_handlers(handlers: dict[int, signal._HANDLER]) -> None:
    """Restore all handlers, even if a restored handler runs at once and raises."""
    try:
        while handlers:
            signal.signal(*handlers.popitem())
    finally:
        if handlers:
            _restore_handlers(handlers)


class Terminated(SystemExit):
    """Exit because of SIGTERM or SIGHUP, which code that catches SystemExit has to raise again."""


def exit_on_signals() -> None:
    """Install handlers by which SIGTERM and SIGHUP raise Terminated, so that `finally` blocks clean up.

    If Python drops or replaces Terminated, or KeyboardInterrupt after Ctrl+C, the handler raises it again.
    Handlers that differ from those at the start of Python stay installed.
    """
    for name, default in DEFAULT_HANDLERS.items():
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is default:
            signal.signal(number, _raise_exit)


_received: list[int] = []


def received_signal() -> int | None:
    """Return the number of the last signal that a handler of `exit_on_signals` received, or `None`."""
    return _received[-1] if _received else None


def _raise_exit(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    if _creates_class(frame):
        _exit_later(number)
        return
    sys.unraisablehook = partial(_exit_after_destructor, number, sys.unraisablehook)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    signal.signal(number, signal.SIG_IGN)  # a second signal would interrupt the removal of temporary files
    raise Terminated(128 + number)  # the exit code by which shells report a signal


def _creates_class(frame: FrameType | None) -> bool:
    """Return whether a `__set_name__` method runs: Python 3.11 replaces its errors by RuntimeError."""
    while frame is not None:
        if frame.f_code.co_name == "__set_name__":
            return True
        frame = frame.f_back
    return False


def _exit_after_destructor(
    number: int, report: Callable[[sys.UnraisableHookArgs], object], dropped: sys.UnraisableHookArgs
) -> None:
    """Exit again if Python dropped the exception because the signal arrived in a destructor."""
    if dropped.exc_type not in (Terminated, KeyboardInterrupt):
        report(dropped)
        return
    signal.signal(number, _raise_exit)
    _exit_later(number)


def _exit_later(number: int) -> None:
    # `os.kill` also interrupts a blocking system call; on Windows, it would end the process
    send = signal.raise_signal if os.name == "nt" else partial(os.kill, os.getpid())
    threading.Timer(RETRY_SECONDS, send, [number]).start()


class _IgnoredWarnings:
    """Context manager that ignores all warnings of the process while at least one `with` block runs."""

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


WARNINGS_IGNORED: Final = _IgnoredWarnings()
"""Context manager that ignores warnings, also in threads. `catch_warnings` is not thread-safe: if two of its
blocks overlap, the block that ends last restores the filter of the other, and silences the process."""
