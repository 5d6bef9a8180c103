"""Models out of and into files: read with clear errors, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from opshift.converter.errors import CannotWrite, InvalidModel, UsageError
from opshift.registry.messages import DecodeError, ModelProto, parse_model


def read_bytes(data: bytes, place: str = "") -> ModelProto:
    """Parse a serialized model.

    Raises:
        InvalidModel: the bytes are empty, truncated, or something else.
    """
    if not data:
        raise InvalidModel("is empty", place=place, remedy="check that it was written completely")
    try:
        return parse_model(data)
    except DecodeError as error:
        raise InvalidModel(
            "is not an ONNX model, is cut off, or nests graphs too deeply",
            place=place,
            remedy="check that it is the right file and was copied completely",
        ) from error


def read_model(path: str | os.PathLike[str]) -> ModelProto:
    """Read a model from a file.

    Raises:
        InvalidModel: it cannot be read, or is no model.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", error)
        raise InvalidModel(f"cannot be read: {reason}", place=str(path)) from error
    return read_bytes(data, str(path))


def write_model(model: ModelProto, path: str | os.PathLike[str]) -> None:
    """Write a model to a file: completely, or the file stays as it was.

    Of a link, the file that it leads to is written.

    Raises:
        UsageError: it is no file, or its folder does not exist.
        CannotWrite: it cannot be written, because the disk is full, say.
    """
    data = model.SerializeToString()
    try:
        home = Path(os.path.realpath(path))
        if home.exists() and not home.is_file():
            raise UsageError("is no file", place=str(path), remedy="name a file to write")
        if not home.parent.is_dir():
            raise UsageError(
                "its folder does not exist", place=str(path), remedy=f"create {home.parent} first"
            )
        _replace(home, data)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", error)
        raise CannotWrite(f"cannot be written: {reason}", place=str(path)) from error


def _replace(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_mode_for(path))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _mode_for(path: Path) -> int:
    """The permissions of the file that is replaced, or what a new one would get."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
