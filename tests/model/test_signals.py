"""Signals during a block that must not be interrupted, and orderly exits."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from textwrap import dedent, indent

import pytest

from opshift.model.process_state import signals_deferred


@pytest.fixture
def _alarm() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_alarm")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGALRM])
def test_signal_interrupts_after_block(number: signal.Signals) -> None:
    done = []
    handler = signal.getsignal(number)

    def run() -> None:
        with signals_deferred():
            signal.raise_signal(number)
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert done == [1]
    assert signal.getsignal(number) is handler


def test_error_of_block_restores_handlers() -> None:
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="inside"), signals_deferred():
        raise ValueError("inside")
    assert signal.getsignal(signal.SIGINT) is handler


def test_block_runs_in_other_thread() -> None:
    done = []

    def run() -> None:
        with signals_deferred():
            done.append(1)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done == [1]


def test_termination_runs_cleanup() -> None:
    code = """
import os, signal
from opshift.model.process_state import exit_on_signals
exit_on_signals()
try:
    os.kill(os.getpid(), signal.SIGTERM)
finally:
    print("cleaned")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (128 + signal.SIGTERM, "cleaned", "")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize(
    "interrupted",
    [
        """class Interrupted:
            def __del__(self):
                send()
        Interrupted()  # deleted at once""",
        """class Interrupting:
            def __set_name__(self, owner, name):
                send()
        class Created:
            attribute = Interrupting()""",
    ],
    ids=["in a destructor", "at the creation of a class"],
)
def test_signal_whose_exception_python_drops_exits(name: str, interrupted: str) -> None:
    code = f"""
        import os, signal, time
        from opshift.model.process_state import exit_on_signals
        def send():
            os.kill(os.getpid(), signal.{name})
        signal.signal(signal.SIGINT, signal.default_int_handler)
        exit_on_signals()
        try:
            {indent(interrupted, "    ").lstrip()}
            time.sleep(10)
        except (KeyboardInterrupt, SystemExit) as error:
            print(repr(error))
    """
    done = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=False)
    expected = "KeyboardInterrupt()" if name == "SIGINT" else "Terminated(143)"
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, expected, "")
