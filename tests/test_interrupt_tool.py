"""Commands that Ctrl+C interrupts at random moments: a sample of what `tools/interrupt.py` runs."""

from __future__ import annotations

import os

import pytest

from interrupt import COMMANDS, MESSAGE, WholeRun, interrupt, outcome_of

pytestmark = pytest.mark.skipif(os.name == "nt", reason="processes of Windows have no process groups")


@pytest.mark.parametrize(
    "command", ["convert . --out out -t 17 --jobs 2", "fit m0.onnx out.onnx -r tract-0.23.9"]
)
def test_sample(command: str) -> None:
    for trial in interrupt(3, seed=1, commands=[command]):
        assert not trial.faults, trial


@pytest.mark.full
def test_all_commands() -> None:
    for trial in interrupt(len(COMMANDS), seed=2):
        assert not trial.faults, trial


PYTHON = (
    'Traceback (most recent call last):\n  File "<frozen site>", line 221, in addsitedir\nKeyboardInterrupt\n'
)
OPSHIFT = (
    'Traceback (most recent call last):\n  File "/a/opshift_start.py", line 1, in main\nKeyboardInterrupt\n'
)

ENDS = {
    "interrupted": (130, MESSAGE, "interrupted"),
    "interrupted by the parser": (130, "", "interrupted"),
    "finished": (1, "warning\n", "finished"),
    "before Python has a handler": (-2, "", "in Python"),
    "while Python starts": (1, PYTHON, "in Python"),
    "before Python runs a line": (1, "KeyboardInterrupt\n", "in Python"),
    "a traceback of opshift": (1, OPSHIFT, "other"),
    "two lines": (130, MESSAGE * 2, "other"),
    "another exit code": (0, "", "other"),
}


@pytest.mark.parametrize(("code", "errors", "expected"), ENDS.values(), ids=ENDS)
def test_ends(code: int, errors: str, expected: str) -> None:
    assert outcome_of(code, errors, WholeRun(1, 1.0, "warning\n", {})) == expected
