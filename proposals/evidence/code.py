"""Load the Python code of a proposal. Loading executes it, so only the evidence modules do so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from opshift.proposals.errors import InvalidProposal
from opshift.registry.errors import Place

Reference = Callable[..., Any]


def load_reference(path: Path) -> Reference:
    """Return the function `reference` of a `reference.py`.

    Raises:
        InvalidProposal: the file cannot be executed, or does not define the function.
    """
    function = getattr(load_module(path), "reference", None)
    if not callable(function):
        raise InvalidProposal(
            "the file does not define a function named reference",
            place=Place(str(path), 1),
            remedy="define `def reference(X, ..., *, attribute)`: positional inputs, attributes by name",
        )
    reference: Reference = function
    return reference


def load_module(path: Path) -> ModuleType:
    """Execute a Python file as a standalone module, without adding it to `sys.modules`.

    Raises:
        InvalidProposal: the file is not valid Python, or its execution fails.
    """
    module = ModuleType(f"proposal_{path.stem}")
    module.__file__ = str(path)
    try:
        # Unlike an import, exec writes no __pycache__ into the proposal.
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:  # the code is arbitrary, and may even call sys.exit
        reason = f"the file cannot be executed: {type(error).__name__}: {error}"
        raise InvalidProposal(reason, place=Place(str(path), _error_line(error, path))) from error
    return module


def _error_line(error: BaseException, path: Path) -> int:
    """Return the line of the innermost frame in the file, or of its syntax error."""
    if isinstance(error, SyntaxError):
        return error.lineno or 1
    line, frame = 1, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == str(path):
            line = frame.tb_lineno
        frame = frame.tb_next
    return line
