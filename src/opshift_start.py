"""Start of the command line: it handles Ctrl+C before anything else is imported, the package included.

It imports only modules that the interpreter has loaded: Ctrl+C in another import prints a traceback. For the
same reason it is not a module of the package, whose `__init__` Python would run first. `signal` would import
`enum`, which takes longer than the rest of the start: this module uses `_signal`, which `signal` wraps.
"""

import os

signal = __import__("_signal")  # type checkers do not know the module

_has_disabled_collections = False
"""Whether `main` has disabled garbage collection."""


def exit_at_once(number: int, frame: object) -> None:
    """Exit with the exit code by which shells report a signal, after Ctrl+C with a message."""
    if number == signal.SIGINT:
        os.write(2, b"error: interrupted\n")
    os._exit(128 + number)


def exit_on_interrupt() -> None:
    """Let Ctrl+C end the process at once, unless the process ignores or handles it in its own way."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, exit_at_once)


def resume_collections() -> None:
    """Enable garbage collection if `main` has disabled it; collections skip all objects that exist by then.

    The setting of another program that runs the command line in its own process stays.
    """
    global _has_disabled_collections
    if _has_disabled_collections:
        import gc

        _has_disabled_collections = False
        gc.freeze()
        gc.enable()


def main() -> None:
    """Run the command line and exit with its exit code."""
    global _has_disabled_collections
    exit_on_interrupt()
    import gc  # built in, so Python reads no file

    # Collections would take 5 to 10 % of a short command: they would traverse all imported modules, and free
    # almost nothing. `resume_collections` ends this when the command is imported.
    _has_disabled_collections = gc.isenabled()
    gc.disable()
    from opshift.cli.main import main as run  # imported only after Ctrl+C is handled

    started = signal.getsignal(signal.SIGINT)
    try:
        if started is exit_at_once:  # `exit_at_once` would leave temporary files and processes behind
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run(resume_collections)
    except KeyboardInterrupt:
        exit_at_once(signal.SIGINT, None)
    except Exception:
        from opshift.model.process_state import received_signal

        # an extension module may replace KeyboardInterrupt by an error of its own, for example in an import
        number = received_signal()
        if number is not None:
            exit_at_once(number, None)
        raise
    finally:
        if started is exit_at_once:
            signal.signal(signal.SIGINT, started)
        resume_collections()  # `--help` imports no command
        gc.freeze()  # no collection while the process ends: it returns all memory anyway
