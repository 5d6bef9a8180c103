"""Handling of signals: blocks of code that none interrupts, and an orderly exit."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

SIGNALS = tuple(signal.valid_signals())

RETRY_SECONDS = 0.01
"""Time after which an exit is tried again: by then, the destructor has returned."""


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Run a block to its end before the handlers of signals that arrive in the meantime.

    A handler may raise, like that of Ctrl+C, and would leave a half modified object. Python runs handlers in
    the main thread only, so a block in another thread needs no protection.
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
        _restore(handlers)
        for missed in arrived:
            signal.raise_signal(missed)


def _restore(handlers: dict[int, signal._HANDLER]) -> None:
    """Restore all handlers, even if a restored one runs at once and raises."""
    try:
        while handlers:
            signal.signal(*handlers.popitem())
    finally:
        if handlers:
            _restore(handlers)


def exit_on_termination() -> None:
    """Exit by an exception after SIGTERM and SIGHUP, so that temporary files are removed and workers end."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _exit)


def _exit(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second signal would interrupt the removal of temporary files
    sys.unraisablehook = partial(_exit_later, number, sys.unraisablehook)
    sys.exit(128 + number)  # the exit code by which shells report a signal


def _exit_later(
    number: int, report: Callable[[sys.UnraisableHookArgs], object], dropped: sys.UnraisableHookArgs
) -> None:
    """Exit again if Python dropped the exception: it does if the signal arrives in a destructor."""
    if dropped.exc_type is not SystemExit:
        report(dropped)
        return
    signal.signal(number, _exit)
    # a real signal: it also ends the wait for a system call
    threading.Timer(RETRY_SECONDS, os.kill, [os.getpid(), number]).start()
