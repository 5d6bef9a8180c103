"""Handling of Ctrl+C from the start of the command line, before anything else is imported.

It imports only what the interpreter has loaded: a signal that arrives earlier would print a traceback.
`signal` would import `enum`, which takes longer than the rest of the start: this module uses `_signal`, which
`signal` wraps.
"""

import os

signal = __import__("_signal")  # type checkers do not know it


def exit_at_once(number: int, frame: object) -> None:
    """Exit after Ctrl+C with a message and the exit code by which shells report it."""
    os.write(2, b"error: interrupted\n")
    os._exit(130)


def exit_on_interrupt() -> None:
    """Exit at once after Ctrl+C, unless the process ignores it or handles it in another way."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, exit_at_once)
