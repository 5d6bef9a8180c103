"""The Python that a proposal brings. Loading it runs it, so it is done only where evidence is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from opshift.proposals.errors import InvalidProposal
from opshift.registry.errors import Place

Reference = Callable[..., Any]


def load_reference(path: Path) -> Reference:
    """The function `reference` of a `reference.py`.

    Raises:
        InvalidProposal: the file cannot be run, or has no such function.
    """
    function = getattr(load_module(path), "reference", None)
    if not callable(function):
        raise InvalidProposal(
            "has no function named reference",
            place=Place(str(path), 1),
            remedy="write `def reference(X, ..., *, attribute)`, inputs in order, attributes by name",
        )
    found: Reference = function
    return found


def load_module(path: Path) -> ModuleType:
    """A Python file as a module of no package; nothing is left of it in `sys.modules`.

    Raises:
        InvalidProposal: it raises something.
    """
    module = ModuleType(f"proposal_{path.stem}")
    module.__file__ = str(path)
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)  # leaves no __pycache__
    except (Exception, SystemExit) as error:  # whatever the file raises
        reason = f"cannot be run: {type(error).__name__}: {error}"
        raise InvalidProposal(reason, place=Place(str(path), _line(error, path))) from error
    return module


def _line(error: BaseException, path: Path) -> int:
    """The last line of the file that was run."""
    if isinstance(error, SyntaxError):
        return error.lineno or 1
    line, frame = 1, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == str(path):
            line = frame.tb_lineno
        frame = frame.tb_next
    return line
