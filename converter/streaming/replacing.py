"""Files that are written beside their places and take them at the end: all of them, or none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from opshift.converter.errors import CannotWrite, UsageError


class Waiting(NamedTuple):
    """A file that is written, or about to be, and its place."""

    temporary: Path
    place: Path


class Replacing:
    """New files, which get to their places when the block that made them ends without an error.

    Raises:
        CannotWrite: one of them does not; then none does.
    """

    def __init__(self) -> None:
        self._waiting: list[Waiting] = []
        self._undo: list[Path] = []
        """Folders that were not there before, and then the files that took their places."""

    def __enter__(self) -> Replacing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            while error is None and self._waiting:
                self._place(self._waiting[-1])
                self._waiting.pop()
        except BaseException:
            self._discard()
            raise
        if error is not None:
            self._discard()

    @contextmanager
    def new(self, place: Path, *, is_safe: bool = False) -> Iterator[tuple[int, Path]]:
        """A file to write, and where it is meanwhile; later ones get to their places before it.

        Args:
            place: the path that it will have.
            is_safe: wait until the disk has it; else a crash of the system may lose old and new.

        Raises:
            OSError: it cannot be made.
        """
        temporary = self._reserve(place)
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            _take_after(place, temporary)
            yield file, temporary
            if is_safe:
                os.fsync(file)
        finally:
            os.close(file)

    def link(self, existing: Path, place: Path) -> None:
        """Give a file a second name.

        Raises:
            OSError: it is on another file system, say.
        """
        os.link(existing.resolve(), self._reserve(place))

    def _reserve(self, place: Path) -> Path:
        self._make_folder(place.parent)
        temporary = place.parent / f".opshift-{os.urandom(8).hex()}.tmp"
        self._waiting.append(Waiting(temporary, place))
        return temporary

    def _make_folder(self, folder: Path) -> None:
        absent = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        self._undo += absent[::-1]

    def _place(self, waiting: Waiting) -> None:
        is_new = not os.path.lexists(waiting.place)
        with writing(waiting.place):
            os.replace(*waiting)
        if is_new:
            self._undo.append(waiting.place)

    def _discard(self) -> None:
        for temporary, _ in self._waiting:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        for made in reversed(self._undo):
            with suppress(OSError):
                made.rmdir() if made.is_dir() else made.unlink()


def _take_after(place: Path, temporary: Path) -> None:
    """Give a new file the permissions, and if possible the owner, of the one that it replaces."""
    try:
        old = place.stat()
    except FileNotFoundError:
        return
    temporary.chmod(old.st_mode & 0o777)
    made = temporary.stat()
    if (made.st_uid, made.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):
            os.chown(temporary, old.st_uid, old.st_gid)


def write_all(file: int, data: bytes | bytearray) -> None:
    """Write bytes to a file, however few of them the system takes at once.

    Raises:
        OSError: it cannot.
    """
    with memoryview(data) as rest:
        written = 0
        while written < len(rest):
            written += os.write(file, rest[written:])


def place_of(path: str | os.PathLike[str]) -> Path:
    """The file that is written to at a path: of a link, what it leads to.

    Raises:
        UsageError: it is no file, its folder does not exist, or it is a link in a circle.
        CannotWrite: it cannot be told, because the name is too long, say.
    """
    with writing(path):
        home = Path(os.path.realpath(path))
        if home.is_symlink() or (home.exists() and not home.is_file()):
            raise UsageError("is no file", place=str(path), remedy="name a file to write")
        if not home.parent.is_dir():
            raise UsageError(
                "its folder does not exist", place=str(path), remedy=f"create {home.parent} first"
            )
        return home


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Tell what the system says as the error that it is.

    Raises:
        CannotWrite: the system refused something.
    """
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or error
        raise CannotWrite(f"cannot be written: {reason}", place=str(path)) from error
