"""File objects: anything that reads or writes bytes, such as open files, pipes and `io.BytesIO`."""

import io
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeGuard

from opshift.model.atomic_files import raising_cannot_write
from opshift.model.errors import InvalidModel, UsageError, wrong_type


class ReadableFile(Protocol):
    """File object that is open for reading in binary mode."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; the result is empty at the end of the file."""
        ...


class WritableFile(Protocol):
    """File object that is open for writing in binary mode."""

    def write(self, data: bytes, /) -> object:
        """Write bytes."""


READ_SIZE = 1 << 20
"""Number of bytes that are read at once."""


def is_readable(value: object) -> TypeGuard[ReadableFile]:
    """Return whether a value has a `read` method, as file objects have."""
    return hasattr(value, "read")


def file_name(file: object) -> str:
    """Return the name of a file object for messages; `""` for a file without a name."""
    name = getattr(file, "name", "")  # `name` is a number if the file was opened by its descriptor
    return name if isinstance(name, str) else ""


def read_blocks(file: ReadableFile) -> Iterator[bytes]:
    """Yield the bytes from the current position to the end.

    Raises:
        InvalidModel: the file cannot be read, or was not opened in binary mode.
        UsageError: the argument is not a file object.
    """
    if not is_readable(file):
        raise wrong_type("source", file, "a path, or a file open for reading in binary mode")
    while True:
        try:
            block: object = file.read(READ_SIZE)
        except (OSError, ValueError) as error:
            from opshift.model.file_formats import unreadable  # imported here: few runs fail

            raise unreadable(file_name(file), error) from error
        if not isinstance(block, bytes):
            reason = f"expected a file of bytes, got {type(block).__name__}"
            raise InvalidModel(reason, place=file_name(file), remedy="open the file in binary mode: 'rb'")
        if not block:
            return
        yield block


def regular_descriptor(file: ReadableFile) -> int | None:
    """Return the descriptor of a regular file at position 0, which can be read at any position; else `None`.

    Other classes of file objects may transform the bytes, as `GzipFile` does: callers copy their bytes.
    """
    raw = getattr(file, "raw", file)
    if not isinstance(raw, io.FileIO) or raw.closed or not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        return None
    return raw.fileno() if getattr(file, "tell", raw.tell)() == 0 else None


def temporary_copy(blocks: Iterable[bytes]) -> int:
    """Write the bytes to a temporary file without a name, and return a descriptor of the file."""
    import tempfile  # imported here: slow to import, and few models come from a pipe

    with tempfile.TemporaryFile() as copy:
        copy.writelines(blocks)
        copy.flush()
        return os.dup(copy.fileno())


@contextmanager
def path_to_write(out: str | os.PathLike[str] | WritableFile) -> Iterator[str | os.PathLike[str]]:
    """Yield the path `out`, or a temporary path whose file is copied to the file object `out` at the end.

    Nothing is copied after an error in the block.

    Raises:
        UsageError: `out` is neither a path nor a file object that was opened for writing in binary mode.
        CannotWrite: the operating system reported an error.
    """
    if isinstance(out, str | os.PathLike):
        yield out
        return
    if not hasattr(out, "write") or isinstance(out, io.TextIOBase):
        reason = f"expected a path or a file open for writing in binary mode, got {type(out).__name__}"
        raise UsageError(reason, remedy="open the file with mode 'wb'")
    import shutil  # imported here: slow to import, and few models go to a pipe
    import tempfile

    with tempfile.TemporaryDirectory(prefix="opshift-") as folder:
        path = Path(folder, "model.onnx")
        yield path
        # buffered, because an unbuffered file may write only a part of the bytes
        buffer = io.BufferedWriter(out) if isinstance(out, io.RawIOBase) else None
        with raising_cannot_write(file_name(out), remedy=""), path.open("rb") as written:
            shutil.copyfileobj(written, buffer or out, READ_SIZE)
            getattr(buffer or out, "flush", bool)()
        if buffer:
            buffer.detach()  # otherwise closing the buffer would close `out`
