"""Models out of and into files: read with clear errors, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from opshift.converter.errors import CannotWrite, InvalidModel
from opshift.converter.streaming.replacing import Replacing, place_of, write_all, writing
from opshift.registry.messages import DecodeError, EncodeError, ModelProto, parse_model

LARGEST_MESSAGE = 2**31 - 1
"""Protobuf neither reads nor writes more bytes as one message."""
WITHOUT_HOLDING = "convert it from file to file, which never holds all of it: opshift.convert_file"


def read_bytes(data: bytes, place: str = "") -> ModelProto:
    """Parse a serialized model.

    Raises:
        InvalidModel: the bytes are empty, truncated, too many for one message, or something else.
    """
    if not data:
        raise InvalidModel("is empty", place=place, remedy="check that it was written completely")
    _require_readable(len(data), place)
    try:
        return parse_model(data)
    except DecodeError as error:
        raise InvalidModel(
            "is not an ONNX model, is cut off, or nests graphs too deeply",
            place=place,
            remedy="check that it is the right file and was copied completely",
        ) from error


def _require_readable(size: int, place: str) -> None:
    if size > LARGEST_MESSAGE:
        reason = "takes more than 2 GiB, which is too much to be read as a whole"
        raise InvalidModel(reason, place=place, remedy=WITHOUT_HOLDING)


def read_model(path: str | os.PathLike[str]) -> ModelProto:
    """Read a model from a file.

    Raises:
        InvalidModel: it cannot be read, or is no model.
    """
    try:
        _require_readable(Path(path).stat().st_size, str(path))
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", error)
        raise InvalidModel(f"cannot be read: {reason}", place=str(path)) from error
    return read_bytes(data, str(path))


def message_of(model: ModelProto, place: str = "") -> bytes:
    """The serialized model.

    Raises:
        CannotWrite: it takes more than 2 GiB.
    """
    try:
        return model.SerializeToString()
    except EncodeError as error:
        raise CannotWrite(
            "takes more than 2 GiB as a message", place=place, remedy=WITHOUT_HOLDING
        ) from error


def write_model(model: ModelProto, path: str | os.PathLike[str]) -> None:
    """Write a model to a file: completely, or the file stays as it was.

    Of a link, the file that it leads to is written.

    Raises:
        UsageError: it is no file, or its folder does not exist.
        CannotWrite: it cannot be written, because the disk is full or the model takes more than 2 GiB, say.
    """
    place = place_of(path)
    data = message_of(model, str(path))
    with writing(path), Replacing() as files, files.new(place, is_safe=True) as (file, _):
        write_all(file, data)
