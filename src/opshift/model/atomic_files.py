"""Write groups of files atomically, all or none, through temporary files; compare files, check paths."""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from opshift.model.errors import CannotWrite, UsageError
from opshift.model.process_state import signals_deferred


class AtomicFiles:
    """New files that are moved to their paths when the `with` block ends without an error.

    Raises:
        CannotWrite: a file cannot be moved, or two files have the same path. Files that were moved before are
            then removed, and the files that they replaced are restored.
    """

    def __init__(self) -> None:
        self._waiting: list[_NewFile] = []
        self._undo: list[tuple[Path, Path | None]] = []
        """Each path to restore after an error, with its backup, or `None` for a new file or folder."""

    def __enter__(self) -> AtomicFiles:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            if error is None:
                with signals_deferred():
                    self._move_all()
        finally:
            self._discard_temporary_files()

    @contextmanager
    def new(
        self, place: Path, *, source: Path | None = None, is_safe: bool = False, is_new: bool = False
    ) -> Iterator[tuple[int, Path]]:
        """Yield the descriptor and path of a new temporary file, which will be moved to `place`.

        The file gets the permissions of the file at `place` or, if there is none, of `source`. With
        `is_safe`, wait until the data is on the disk: otherwise a system crash may lose both the old and the
        new file. With `is_new`, refuse to replace a file that has other content.

        Raises:
            OSError: the file cannot be created.
        """
        temporary = self._reserve_path(place, is_new)
        # the umask of the process applies to the mode, as it does for `cp`
        mode = source.stat().st_mode & PERMISSIONS if source is not None else 0o666
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        try:
            _copy_permissions(place, temporary)
            yield file, temporary
            if is_safe:
                os.fsync(file)
        finally:
            os.close(file)

    def link(self, existing: Path, place: Path, *, is_new: bool = False) -> None:
        """Create a hard link to the file `existing`; the link will be moved to `place`, like a file of `new`.

        Raises:
            OSError: the link cannot be created, for example because the file is on another file system.
        """
        os.link(existing.resolve(), self._reserve_path(place, is_new))

    def _reserve_path(self, place: Path, is_new: bool) -> Path:
        missing = [each for each in place.parents if not each.exists()]
        self._undo += ((each, None) for each in reversed(missing))
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = _temporary_path(place)
        self._waiting.append(_NewFile(temporary, place, is_new))
        return temporary

    def _move_all(self) -> None:
        # in reverse order: external data files, created after the model, are in place before the model
        written: set[tuple[int, int]] = set()
        while self._waiting:
            file = self._waiting[-1]
            with raising_cannot_write(file.place):
                new = _file_identity(file.temporary)
                if os.path.lexists(file.place) and _file_identity(file.place) in written:
                    reason = "would be written twice: two output names refer to the same file"
                    raise CannotWrite(reason, place=str(file.place), remedy="rename one of the files")
                has_undo = len(self._waiting) > 1  # an error for a later file must undo this one
                if has_undo:
                    self._prepare_undo(file.place)
                if _move_file(file):
                    written.add(new)
                elif has_undo:
                    self._forget_undo()
            self._waiting.pop()
        for _, backup in self._undo:
            if backup is not None:
                with suppress(OSError):
                    backup.unlink()
        self._undo.clear()

    def _prepare_undo(self, place: Path) -> None:
        backup = _temporary_path(place) if os.path.lexists(place) else None
        if backup is not None:
            try:
                os.link(place, backup, follow_symlinks=os.link not in os.supports_follow_symlinks)
            except OSError:  # the file system has no hard links
                place.rename(backup)
        self._undo.append((place, backup))

    def _forget_undo(self) -> None:
        _, backup = self._undo.pop()
        if backup is not None:
            backup.unlink()

    def _discard_temporary_files(self) -> None:
        for file in self._waiting:
            with suppress(OSError):
                file.temporary.unlink(missing_ok=True)
        for path, backup in reversed(self._undo):
            with suppress(OSError):
                if backup is not None:
                    _restore_backup(backup, path)
                elif path.is_dir():
                    path.rmdir()
                else:
                    path.unlink()


def _file_identity(path: Path) -> tuple[int, int]:
    """Return the device and inode: all names of a file share them, even if the file system ignores case."""
    found = path.lstat()
    return found.st_dev, found.st_ino


def _restore_backup(backup: Path, path: Path) -> None:
    try:
        backup.replace(path)
    except OSError:
        backup.rename(path)
    # a rename between two links of one file does nothing: remove the backup
    backup.unlink(missing_ok=True)


class _NewFile(NamedTuple):
    """Temporary file and its final path; with `is_new`, it must not replace a file with other content."""

    temporary: Path
    place: Path
    is_new: bool


PERMISSIONS = 0o777
"""Bits of a file's mode that opshift copies."""


MACHINE = os.uname().nodename if hasattr(os, "uname") else ""
"""Name of this machine in temporary file names: several machines may write to one network folder."""


def temporary_files(process: int | str) -> str:
    """Return the glob pattern for names of temporary files; `process` is a process id, or `*` for all."""
    return f".opshift-{process}-{MACHINE}-*.tmp"


def _temporary_path(place: Path) -> Path:
    # the name has the process id and machine, so that another process can remove the file after a crash
    return place.parent / temporary_files(os.getpid()).replace("*", os.urandom(8).hex())


def remove_abandoned_files(folder: Path) -> None:
    """Remove the temporary files below a folder that belong to ended processes of this machine."""
    for path in folder.rglob(temporary_files("*")):
        process = path.name.split("-")[1]
        if process.isdecimal() and not _is_running(int(process)):
            with suppress(OSError):
                path.unlink()


def _is_running(process: int) -> bool:
    if os.name == "nt":  # on Windows, `os.kill` would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
        return True
    return True


def _move_file(file: _NewFile) -> bool:
    """Move a file to its path; return False if `is_new` is set and an equal file already exists there."""
    if not file.is_new:
        file.temporary.replace(file.place)
        return True
    try:
        os.link(file.temporary, file.place)  # unlike a rename, fails if the file exists
    except OSError:
        if os.path.lexists(file.place):
            if not (file.place.is_file() and have_equal_content(file.temporary, file.place)):
                raise
            file.temporary.unlink()
            return False
        file.temporary.rename(file.place)  # the file system has no hard links
    else:
        file.temporary.unlink()
    return True


COMPARED_SIZE = 1 << 18
"""Number of bytes of two files that are compared at once."""


def have_equal_content(first: Path, second: Path) -> bool:
    """Return whether two files are regular and have equal bytes; raise OSError if one cannot be read.

    The bytes are read each time: `filecmp.cmp` caches a result by size and modification time, which copies
    and archives preserve.
    """
    states = first.stat(), second.stat()
    if states[0].st_size != states[1].st_size or not all(stat.S_ISREG(each.st_mode) for each in states):
        return False
    if os.path.samestat(*states):
        return True
    with first.open("rb") as one, second.open("rb") as other:
        while block := one.read(COMPARED_SIZE):
            if block != other.read(COMPARED_SIZE):
                return False
        return not other.read(1)


def _copy_permissions(place: Path, temporary: Path) -> None:
    """Copy the permissions and, if possible, the owner of the file that will be replaced."""
    try:
        old = place.stat()
    except FileNotFoundError:
        return
    temporary.chmod(old.st_mode & PERMISSIONS)
    created = temporary.stat()
    if (created.st_uid, created.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):
            os.chown(temporary, old.st_uid, old.st_gid)


def write_files(contents: Mapping[Path, str | bytes], new: Container[Path] = ()) -> None:
    """Write all files, or leave all of them unchanged; files in `new` must not replace different content.

    Raises:
        CannotWrite: a file cannot be written.
    """
    with AtomicFiles() as files:
        for path, content in contents.items():
            with raising_cannot_write(path), files.new(path, is_new=path in new) as (file, _):
                write_all(file, content.encode() if isinstance(content, str) else content)


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
    """Return the file that a write to a path affects: for a symbolic link, its target.

    Raises:
        UsageError: the path is a folder or similar, its folder does not exist, or it is a circular link.
        CannotWrite: the path cannot be resolved, for example because the name is too long.
    """
    with raising_cannot_write(path):
        resolved = Path(os.path.realpath(path))
        is_folder = os.fspath(path).endswith(os.sep)  # even if no file of this name exists
        if is_folder or resolved.is_symlink() or (resolved.exists() and not resolved.is_file()):
            raise UsageError("is not a regular file", place=str(path), remedy="choose a file to write")
        if not resolved.parent.is_dir():
            remedy = f"create {resolved.parent} first"
            raise UsageError("is in a folder that does not exist", place=str(path), remedy=remedy)
        return resolved


def destination_below(folder: Path, *parts: str) -> Path:
    """Return the path of a file to write in a folder.

    Raises:
        UsageError: the path leads out of the folder, by its parts or by a symbolic link.
        CannotWrite: the path cannot be resolved.
    """
    path = folder.joinpath(*parts)
    with raising_cannot_write(path):
        if path.resolve().is_relative_to(folder.resolve()):
            return path
    reason, remedy = f"is outside of the folder {folder}", "correct the name, or remove the symbolic link"
    raise UsageError(reason, place=str(path), remedy=remedy)


@contextmanager
def raising_cannot_write(
    path: str | os.PathLike[str], remedy: str = "check the path, its permissions and the free space"
) -> Iterator[None]:
    """Turn OSError and ValueError into CannotWrite, with `remedy` for an OSError.

    Raises:
        CannotWrite: the operating system reported an error, or the path is invalid.
    """
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, ValueError):
            remedy = "correct the path, or pass an open file"
        raise CannotWrite(f"cannot be written: {reason}", place=str(path), remedy=remedy) from error
