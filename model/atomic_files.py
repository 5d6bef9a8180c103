"""Files that are written under temporary names and moved into place together: all or none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from opshift.model.errors import CannotWrite, UsageError


class AtomicFiles:
    """New files that are moved to their paths when the `with` block ends without an error.

    Raises:
        CannotWrite: a file cannot be moved. Files and folders that did not exist before are then removed.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Path, Path]] = []
        """Temporary files, each with the path that it will replace."""
        self._undo: list[Path] = []
        """Created folders and newly created paths, to be removed after an error."""

    def __enter__(self) -> AtomicFiles:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            # in reverse order: external data, which is created after the model, is in place before it
            while error is None and self._waiting:
                self._move_into_place(*self._waiting[-1])
                self._waiting.pop()
        except BaseException:
            self._discard()
            raise
        if error is not None:
            self._discard()

    @contextmanager
    def new(self, place: Path, *, is_safe: bool = False) -> Iterator[tuple[int, Path]]:
        """Create a temporary file for the path `place`, and yield its descriptor and path.

        With `is_safe`, wait until the data is on the disk: else a system crash may lose old and new file.

        Raises:
            OSError: the file cannot be created.
        """
        temporary = self._reserve(place)
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            _copy_permissions(place, temporary)
            yield file, temporary
            if is_safe:
                os.fsync(file)
        finally:
            os.close(file)

    def link(self, existing: Path, place: Path) -> None:
        """Create a hard link to a file.

        Raises:
            OSError: the link cannot be created, for example because the file is on another file system.
        """
        os.link(existing.resolve(), self._reserve(place))

    def _reserve(self, place: Path) -> Path:
        missing = [each for each in place.parents if not each.exists()]
        place.parent.mkdir(parents=True, exist_ok=True)
        self._undo += missing[::-1]
        temporary = place.parent / f".opshift-{os.urandom(8).hex()}.tmp"
        self._waiting.append((temporary, place))
        return temporary

    def _move_into_place(self, temporary: Path, place: Path) -> None:
        is_new = not os.path.lexists(place)
        with raising_cannot_write(place):
            os.replace(temporary, place)
        if is_new:
            self._undo.append(place)

    def _discard(self) -> None:
        for temporary, _ in self._waiting:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        for created in reversed(self._undo):
            with suppress(OSError):
                created.rmdir() if created.is_dir() else created.unlink()


def _copy_permissions(place: Path, temporary: Path) -> None:
    """Copy the permissions and, if possible, the owner of the file that will be replaced."""
    try:
        old = place.stat()
    except FileNotFoundError:
        return
    temporary.chmod(old.st_mode & 0o777)
    created = temporary.stat()
    if (created.st_uid, created.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):
            os.chown(temporary, old.st_uid, old.st_gid)


def write_all(file: int, data: bytes | bytearray) -> None:
    """Write all bytes to a file; a single system call may write only a part of them.

    Raises:
        OSError: the file cannot be written.
    """
    with memoryview(data) as rest:
        written = 0
        while written < len(rest):
            written += os.write(file, rest[written:])


def write_destination(path: str | os.PathLike[str]) -> Path:
    """Return the file that a write to a path affects, which is the target of a symbolic link.

    Raises:
        UsageError: the path is not a regular file, its folder does not exist, or it is a circular link.
        CannotWrite: the path cannot be resolved, for example because the name is too long.
    """
    with raising_cannot_write(path):
        resolved = Path(os.path.realpath(path))
        if resolved.is_symlink() or (resolved.exists() and not resolved.is_file()):
            raise UsageError("is not a regular file", place=str(path), remedy="choose a file to write")
        if not resolved.parent.is_dir():
            remedy = f"create {resolved.parent} first"
            raise UsageError("is in a folder that does not exist", place=str(path), remedy=remedy)
        return resolved


@contextmanager
def raising_cannot_write(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise errors of the operating system as CannotWrite.

    Raises:
        CannotWrite: the operating system reported an error.
    """
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or error
        raise CannotWrite(f"cannot be written: {reason}", place=str(path)) from error
