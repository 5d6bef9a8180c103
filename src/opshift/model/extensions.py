"""Execution of code outside of this package, such as private adapters, and reports of its errors."""

import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from traceback import walk_tb

from opshift.model.errors import OpshiftError, Place

PACKAGE = "opshift."

FAILURES = (Exception, SystemExit)
"""Exceptions to catch from private code: even `sys.exit` must not end a conversion without a message."""


class ExtensionFailed(OpshiftError):
    """Private code, such as an adapter, raises an exception or returns an invalid result.

    The model may be valid. The place is the file and the line of the code, and the node.

    Attributes:
        extension: label of the code, such as `adapter com.acme.Scale 1 -> 2`.
        exception: type and text of the exception, such as `KeyError: 'x'`; empty for an invalid result.
    """

    def __init__(self, extension: str, problem: str, *, place: Place, exception: str = "") -> None:
        self.extension = extension
        self.exception = exception
        super().__init__(f"the {extension} {problem}", place=place, remedy="fix the code at this place")

    def as_dict(self) -> dict[str, str]:
        """Return the fields for JSON output."""
        return {**super().as_dict(), "extension": self.extension, "exception": self.exception}


def is_external(function: Callable[..., object]) -> bool:
    """Return whether a function is not part of this package."""
    return not getattr(function, "__module__", "").startswith(PACKAGE)


def extension_failed(
    extension: str, function: Callable[..., object], cause: BaseException | str, node: str = ""
) -> ExtensionFailed:
    """Return the error for a function that raises an exception, or returns an invalid result.

    `cause` is the exception, or the problem as text; `node` is the label of the node in the call.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code else (repr(function), 0)
    if isinstance(cause, str):
        return ExtensionFailed(extension, cause, place=Place(file, line, node))
    exception = f"{type(cause).__name__}: {cause}"
    place = Place(file, error_line(cause, file) or line, node)
    return ExtensionFailed(extension, f"raises {exception}", place=place, exception=exception)


def module_name(file: Path) -> str:
    """Return a module name derived from the whole path: files in different folders may have equal names."""
    # Imported here: the import takes 4 ms, and conversions without private code do not use the module.
    import hashlib

    return f"opshift_file_{hashlib.blake2b(str(file.resolve()).encode(), digest_size=6).hexdigest()}"


_FILE_LOCKS: dict[str, RLock] = {}


def file_lock(name: str) -> RLock:
    """Return the lock of a file's module, so that only one thread at a time executes the file."""
    return _FILE_LOCKS.setdefault(name, RLock())


def run_file(file: Path) -> None:
    """Execute a Python file as a module; if it raises an exception, remove the module from `sys.modules`."""
    name = module_name(file)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError("expected a Python file (.py)")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def error_line(error: BaseException, path: Path | str) -> int:
    """Return the line of the innermost frame in a file, or of a syntax error in the file; 0 if none."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 1
    frames = walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == str(path)]
    return lines[-1] if lines else 0
