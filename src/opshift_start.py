"""Start of the command line: it handles Ctrl+C before anything else is imported, the package included.

It imports only modules that the interpreter has loaded: Ctrl+C in another import prints a traceback. For the
same reason it is not a module of the package, whose `__init__` Python would run first. `signal` would import
`enum`, which takes longer than the rest of the start: this module uses `_signal`, which `signal` wraps.
"""

import os

signal = __import__("_signal")  # type checkers do not know it


def exit_at_once(number: int, frame: object) -> None:
    """Exit after Ctrl+C with a message and the exit code 130, by which shells report Ctrl+C."""
    os.write(2, b"error: interrupted\n")
    os._exit(130)


def exit_on_interrupt() -> None:
    """Let Ctrl+C end the process at once, unless the process ignores or handles it in its own way."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, exit_at_once)


def main() -> None:
    """Run the command line and exit with its exit code."""
    exit_on_interrupt()
    import gc  # built in, so Python reads no file

    # Collections would take 5 to 10 % of a short command: they would traverse all imported modules, and free
    # almost nothing. `opshift.cli.main` enables garbage collection when it has imported the command.
    gc.disable()
    from opshift.cli.main import main as run  # imported only after Ctrl+C is handled

    try:
        run()
    finally:
        gc.freeze()  # no collection while the process ends: it returns all memory anyway
