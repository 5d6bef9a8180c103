"""Type checks of the arguments of public functions."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeGuard

from opshift.model.errors import UsageError


def wrong_type(argument: str, value: object, expected: str) -> UsageError:
    """Return the error for an argument of a wrong type; `expected` describes the allowed values."""
    reason = f"expected {expected}, got {type(value).__name__}"
    return UsageError(reason, place=f"argument {argument}", remedy=f"pass {expected}")


def require_type(argument: str, value: object, types: type | tuple[type, ...], expected: str) -> None:
    """Raise UsageError unless an argument is an instance of one of the types."""
    if not isinstance(value, types):
        raise wrong_type(argument, value, expected)


def path_argument(argument: str, value: object) -> Path:
    """Return an argument as a path; raise UsageError for other types, an empty text and a null character.

    `Path` would read an empty text as the current folder.
    """
    text: object = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        raise wrong_type(argument, value, "a path")
    if not text or "\0" in text:
        reason = "the path has a null character" if text else "the path is empty"
        raise UsageError(reason, place=f"argument {argument}", remedy="pass the path of a file or folder")
    return Path(text)


def path_arguments(argument: str, values: object) -> tuple[Path, ...]:
    """Return one path, several, or none for `None`, as paths; raise UsageError for other types."""
    if values is None:
        return ()
    if isinstance(values, str | os.PathLike):
        return (path_argument(argument, values),)
    if not is_collection(values):
        raise wrong_type(argument, values, "a path or several")
    return tuple(path_argument(argument, each) for each in values)


def is_collection(value: object) -> TypeGuard[Iterable[object]]:
    """Return whether a value has members; text, bytes and arrays without dimensions are single values."""
    if isinstance(value, str | bytes | bytearray | memoryview) or not isinstance(value, Iterable):
        return False
    return getattr(value, "shape", None) != ()


def require_collection(argument: str, value: object, expected: str) -> None:
    """Raise UsageError unless `is_collection`; `expected` describes the allowed values."""
    if not is_collection(value):
        raise wrong_type(argument, value, expected)
