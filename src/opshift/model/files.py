"""Read models from files, bytes, messages and onnx_ir models, write files atomically, pause the collector.

A caller that passes an onnx_ir model has imported onnx_ir, so recognizing the model needs no import.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeGuard, TypeVar, cast

from opshift.model.atomic_files import AtomicFiles, raising_cannot_write, write_all, write_destination
from opshift.model.binary_files import (
    ReadableFile,
    WritableFile,
    file_name,
    is_readable,
    path_to_write,
    read_blocks,
)
from opshift.model.errors import CannotWrite, InvalidModel, OpshiftError, Place, not_utf8_error
from opshift.model.locations import is_url
from opshift.model.messages import DecodeError, EncodeError, ModelProto
from opshift.model.wire_format import ReadBytes, fields

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Argument = TypeVar("Argument")


class OnnxIrModel(Protocol):
    """An `onnx_ir.Model`."""

    @property
    def graph(self) -> object:
        """The main graph."""

    @property
    def opset_imports(self) -> object:
        """The opset imports by domain."""


class OnnxProgram(Protocol):
    """A `torch.onnx.ONNXProgram`."""

    @property
    def model(self) -> object:
        """The `onnx_ir.Model`."""

    @property
    def exported_program(self) -> object:
        """The program that was exported."""

    def release(self) -> None:
        """End the session that runs the model."""


def is_onnx_ir(model: object) -> TypeGuard[OnnxIrModel | OnnxProgram]:
    """Return whether an object is an `onnx_ir.Model`, or an ONNXProgram with such a model."""
    package = sys.modules.get("onnx_ir")
    held = getattr(model, "model", None) if hasattr(model, "exported_program") else model
    return package is not None and isinstance(held, package.Model)


def requiring_text(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function that reads models: it raises InvalidModel if a string of a model is not UTF-8.

    For such a string, some protobuf releases raise UnicodeDecodeError. Others return bytes, which lead to
    other errors: only then are the strings examined, because that takes longer than most functions.
    """

    @wraps(function)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except OpshiftError:
            raise
        except Exception as error:
            is_about_text = isinstance(error, UnicodeDecodeError)
            if is_about_text or any(map(_has_invalid_text, (*args, *kwargs.values()))):
                raise not_utf8_error() from error
            raise

    return checked


def _has_invalid_text(argument: Any) -> bool:
    """Return whether an argument is a message, serialized model or path of a model with invalid text."""
    if hasattr(argument, "ListFields"):
        return not is_text(argument)
    if isinstance(argument, (str, os.PathLike, *BYTES_TYPES)):
        with suppress(OpshiftError, OSError):
            return not is_text(model_of(argument)[0])
    return False


def is_text(message: Any) -> bool:
    """Return whether all string fields of a message and of its nested messages are UTF-8 text."""
    for field, value in message.ListFields():
        for each in value if hasattr(value, "extend") else (value,):
            if hasattr(each, "ListFields"):
                if not is_text(each):
                    return False
            elif field.type == field.TYPE_STRING and isinstance(each, bytes):
                return False
    return True


def reading_onnx_ir(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function that reads models: convert each onnx_ir argument to a ModelProto.

    Placeholders replace the large tensors while the function runs. Models must have valid text, see
    `requiring_text`.
    """
    checked = requiring_text(function)

    @wraps(function)
    def wrapper(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with ExitStack() as stack:
            given = [message_of(each, stack) for each in args]
            named = {name: message_of(each, stack) for name, each in kwargs.items()}
            return checked(*given, **named)  # type: ignore[arg-type]

    return wrapper


def message_of(argument: Argument, stack: ExitStack) -> Argument | ModelProto:
    """Return an onnx_ir model as a message, valid while `stack` is open; other arguments stay unchanged."""
    if not is_onnx_ir(argument):
        return argument
    from opshift.model.onnx_ir import OnnxIrMessage  # imported here: few models are onnx_ir models

    return stack.enter_context(OnnxIrMessage(argument)).proto


BytesLike = bytes | bytearray | memoryview
"""Types that hold a serialized model."""

BYTES_TYPES = (bytes, bytearray, memoryview)


class ModelMessage(Protocol):
    """ModelProto of any message class: opshift's or onnx's."""

    @property
    def graph(self) -> object:
        """The main graph."""

    @property
    def opset_import(self) -> object:
        """The opset imports."""


ModelObject = ModelMessage | OnnxIrModel | OnnxProgram
"""Model classes for which a conversion returns a model of the same class."""

FileLike = str | os.PathLike[str] | ReadableFile
"""Types from which a serialized model is read: a path, a URL, or a file object in binary mode."""

Model = TypeVar("Model", bound=ModelObject)

ModelLike = ModelObject | BytesLike | FileLike


def is_message(model: object) -> bool:
    """Return whether an object has the fields `graph` and `opset_import`, as any ModelProto class has."""
    return hasattr(model, "opset_import") and hasattr(model, "graph")


def model_of(model: ModelLike) -> tuple[ModelProto, bool]:
    """Return the model as a message, and whether the message was created here and may be modified.

    A message is returned unchanged, annotated as ModelProto: all message classes have the same fields.

    Raises:
        InvalidModel: the class of the model is not in ModelLike, or the model cannot be read.
        UsageError: see `read_model`.
    """
    if is_message(model):
        return cast("ModelProto", model), False
    if isinstance(model, BYTES_TYPES):
        return read_bytes(bytes(model)), True
    if isinstance(model, str | os.PathLike) or is_readable(model):
        return read_model(model), True
    if is_onnx_ir(model):
        from opshift.model.onnx_ir import OnnxIrMessage  # imported here: few models are onnx_ir models

        return OnnxIrMessage(model, with_elements=True).proto, True
    reason = f"expected a ModelProto, bytes, a path or a binary file, got {type(model).__name__}"
    raise InvalidModel(reason, remedy="pass one of these, an onnx_ir.Model, or an ONNXProgram")


MAX_MESSAGE_BYTES = 2**31 - 1
"""Maximum size of a serialized message; a limit of protobuf."""

CONVERT_FILE_REMEDY = "convert it from file to file, without loading all of it: opshift.convert_file"


def parse_model(data: bytes | memoryview) -> ModelProto:
    """Return the model serialized in `data`.

    Strings that are not UTF-8 may pass here and raise UnicodeDecodeError when they are read.

    Raises:
        DecodeError: `data` is not one serialized message.
    """
    try:
        return ModelProto.FromString(bytes(data))
    except (DecodeError, UnicodeDecodeError) as error:
        raise DecodeError(f"not a serialized ONNX model: {error}") from error


def read_bytes(data: bytes, place: str = "") -> ModelProto:
    """Parse a serialized model; error messages name the file `place`.

    Raises:
        InvalidModel: the bytes are empty, truncated, larger than 2 GiB, or not a model.
    """
    if not data:
        raise InvalidModel("is empty", place=place, remedy="check that it was written completely")

    def read(start: int, end: int) -> bytes:
        return data[start:end]

    _require_readable(read, len(data), place)
    try:
        model = parse_model(data)
    except DecodeError as error:
        named = _named_format(read, len(data), place)
        raise named or _unreadable_model(read, len(data), place) from error
    # protobuf messages of other formats may parse as a model without nodes
    named = None if model.graph.node else _named_format(read, len(data), place)
    if named:
        raise named
    return model


def _named_format(read: ReadBytes, size: int, place: str) -> InvalidModel | None:
    # imported here: most files are models
    from opshift.model.file_formats import named_format

    return named_format(read, size, place)


def _unreadable_model(read: ReadBytes, size: int, place: str) -> InvalidModel:
    """Return the error for bytes that protobuf cannot parse, with the position of the error if found."""
    try:
        for _ in fields(read, 0, size):
            pass
    except InvalidModel as error:
        error.place = Place(node=place)
        return error
    return InvalidModel(
        "is not an ONNX model, is damaged, or nests graphs too deeply",
        place=place,
        remedy="check that it is the right file and was copied completely",
    )


def read_model(path: FileLike) -> ModelProto:
    """Read a model from a file, a URL, or from the current position of a file object in binary mode.

    Raises:
        InvalidModel: the file cannot be read, or is not a model.
        UsageError: the URL is invalid, or no installed package supports its scheme.
    """
    if is_url(path):
        from opshift.model.remote import open_url  # imported here: few models are read from a URL

        with open_url(str(path)) as file:
            if not isinstance(file, io.FileIO):
                _require_readable(file.read, file.size, file.place)
                return read_bytes(file.read(0, file.size), file.place)
            return read_model(file)
    if not isinstance(path, str | os.PathLike):
        size, blocks = 0, []
        for block in read_blocks(path):
            size += len(block)
            blocks.append(block)
            if size > MAX_MESSAGE_BYTES:
                break
        return read_bytes(b"".join(blocks), file_name(path))

    def read(start: int, end: int) -> bytes:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(end - start)

    try:
        _require_readable(read, Path(path).stat().st_size, str(path))
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        from opshift.model.file_formats import unreadable  # imported here: few runs fail

        raise unreadable(str(path), error) from error
    return read_bytes(data, str(path))


def _require_readable(read: ReadBytes, size: int, place: str) -> None:
    if size > MAX_MESSAGE_BYTES:
        reason = "is larger than 2 GiB and cannot be read as one message"
        error = InvalidModel(reason, place=place, remedy=CONVERT_FILE_REMEDY)
        raise _named_format(read, size, place) or error


def serialize_model(model: ModelProto, place: str = "") -> bytes:
    """Serialize a model; error messages name the file `place`.

    Raises:
        CannotWrite: the model is larger than 2 GiB.
    """
    try:
        return model.SerializeToString()
    except EncodeError as error:
        reason = "the serialized model is larger than 2 GiB"
        raise CannotWrite(reason, place=place, remedy=CONVERT_FILE_REMEDY) from error


def write_model(model: ModelObject, path: str | os.PathLike[str] | WritableFile) -> None:
    """Write a model to a file atomically: if writing fails, the file remains unchanged.

    A symbolic link is followed: its target is replaced. A file object gets the model at its current position.

    Raises:
        InvalidModel: the class of the model is not supported, or onnx_ir cannot serialize the model.
        UsageError: `path` is neither a path nor a binary file, is a folder, or its folder does not exist.
        CannotWrite: the file cannot be written: the disk is full, the model is larger than 2 GiB, or similar.
    """
    with path_to_write(path) as named:
        place = write_destination(named)
        data = serialize_model(model_of(model)[0], str(named))
        with raising_cannot_write(named), AtomicFiles() as files, files.new(place, is_safe=True) as (file, _):
            write_all(file, data)


def gc_paused(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Disable garbage collection while a function runs.

    A plan only grows, so each collection would traverse it without freeing anything. Objects outside of
    reference cycles are still freed at once. Decorate public functions only: the result of an inner function
    would be traversed when collection is enabled again. Disabled collection stays disabled.
    """

    @wraps(function)
    def paused(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()
            if 0 < gc.get_threshold()[0] < gc.get_count()[0]:
                # Collect now: a caller in a loop may pause again before an allocation starts the collection.
                gc.collect(0)

    return paused
