"""Write objects in stores: an object appears completely, or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from opshift.model.errors import CannotWrite, OpshiftError, UsageError
from opshift.model.process_state import signals_deferred
from opshift.model.progress import Progress
from opshift.model.remote import COPY_SIZE, RemoteFile, StoreObject, error_text
from opshift.model.tensor_pieces import Piece, Range, total_size
from opshift.model.wire_format import ReadBytes
from opshift.stores.s3 import MIN_PART, MultipartUpload, abort_uploads, s3_store
from opshift.stores.source_file import Source

Part = Sequence[Piece]
"""Part of an upload: one range that the store can copy, or bytes and ranges that pass through memory."""


def join_ranges(pieces: Iterable[Piece], read: ReadBytes) -> list[Piece]:
    """Join consecutive ranges if the bytes between them are the same in the source.

    Large tensors that follow each other in the source, with unchanged bytes between them, become one range.
    """
    joined: list[Piece] = []
    last, between = None, b""
    for piece in pieces:
        if not isinstance(piece, Range):
            between += piece
            continue
        if last is not None and _is_same_content(last, between, piece, read):
            last = Range(last.start, piece.end)
        else:
            joined += [each for each in (last, between) if each]
            last = piece
        between = b""
    return [*joined, *(each for each in (last, between) if each)]


def _is_same_content(first: Range, between: bytes, second: Range, read: ReadBytes) -> bool:
    return second.start - first.end == len(between) and read(first.end, second.start) == between


def divide(pieces: Iterable[Piece], least: int, most: int) -> Iterator[Part]:
    """Yield the pieces of an object in parts of at least `least` bytes; the last part may be smaller.

    A part that is one range, which the store can copy, has at most `most` bytes; other parts have `least`.
    """
    waiting: list[Piece] = []
    missing = least
    for piece in pieces:
        rest = piece
        while size := total_size([rest]):
            is_copied = isinstance(rest, Range) and not waiting and size >= least
            cut = min(size, most if is_copied else missing)
            first, rest = _split_piece(rest, cut)
            if is_copied:
                yield [first]
                continue
            waiting.append(first)
            missing -= cut
            if not missing:
                yield waiting
                waiting, missing = [], least
    if waiting:
        yield waiting


def _split_piece(piece: Piece, size: int) -> tuple[Piece, Piece]:
    if isinstance(piece, Range):
        middle = piece.start + size
        return Range(piece.start, middle), Range(middle, piece.end)
    return piece[:size], piece[size:]


MAX_SINGLE_PUT = 64 << 20
"""Maximum size in bytes of an object that is sent with one request."""


@contextmanager
def new_object(
    location: str,
    pieces: Sequence[Piece],
    source: Source,
    progress: Progress | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """Send the pieces of an object, and yield its size; it appears once the `with` block ends without error.

    If S3 stores the source, S3 copies large ranges itself.

    Args:
        location: the URL of the object.
        pieces: bytes, and ranges of `source`.
        source: the file or object of the ranges.
        progress: counts the bytes of the ranges that were sent.
        metadata: user-defined metadata of the object; only S3 stores it.

    Raises:
        InvalidModel: the source cannot be read, or changed.
        CannotWrite: the object cannot be written.
        UsageError: the store is read-only, or the URL is not usable.
    """
    progress = progress or Progress()
    target = writable_object(location)
    is_same_store = isinstance(source, RemoteFile) and source.source.store == target.store
    with _raising_cannot_write(location):
        upload = _start_upload(target, list(pieces), source, is_same_store, metadata or {})
    try:
        for part in divide(join_ranges(pieces, source.read), upload.least, upload.most):
            if not (is_same_store and _copy_in_store(upload, part, source)):
                content = b"".join(each if isinstance(each, bytes) else source.read(*each) for each in part)
                with _raising_cannot_write(location):
                    upload.send(content)
            progress.done += sum(each.end - each.start for each in part if isinstance(each, Range))
        yield total_size(pieces)
        with _raising_cannot_write(location):
            upload.complete()
    except BaseException:
        with signals_deferred(), suppress(Exception):
            upload.abort()
        raise


def write_object(location: str, content: bytes) -> None:
    """Write a small object; raise CannotWrite or the errors of `writable_object`."""
    target = writable_object(location)
    with _raising_cannot_write(location):
        target.store.pipe_file(target.path, content)


def remove_object(location: str) -> None:
    """Remove an object, if it exists; raise CannotWrite or the errors of `writable_object`."""
    target = writable_object(location)
    with _raising_cannot_write(location), suppress(FileNotFoundError):
        target.store.rm_file(target.path)


def remove_unfinished(location: str) -> None:
    """Abort unfinished S3 uploads of an object, left by killed processes; no process may be writing it.

    Raises:
        CannotWrite: the store refuses the request.
        UsageError: the URL is not usable.
    """
    target = StoreObject.at(location)
    store = s3_store(target.store)
    if store:
        with _raising_cannot_write(location):
            abort_uploads(store, target.path)


def writable_object(location: str) -> StoreObject:
    """Return the object at a URL; raise a UsageError for web servers, object versions and invalid URLs."""
    target = StoreObject.at(location)
    if "https" in target.protocols:
        reason, remedy = "web servers are read-only", "name a file, or an object in a store"
        raise UsageError(reason, place=location, remedy=remedy)
    if "?versionId=" in target.path:
        reason, remedy = "is a version of an object, which cannot change", "name the object without a version"
        raise UsageError(reason, place=location, remedy=remedy)
    return target


@contextmanager
def _raising_cannot_write(location: str) -> Iterator[None]:
    try:
        yield
    except OpshiftError:
        raise
    except Exception as error:  # The client libraries raise classes of errors that only they define.
        remedy = "check the URL, the credentials and the network"
        raise CannotWrite(f"cannot be written: {error_text(error)}", place=location, remedy=remedy) from error


class _Upload(Protocol):
    """Upload of an object; `least` and `most` are the sizes of parts for `divide`."""

    @property
    def least(self) -> int: ...

    @property
    def most(self) -> int: ...

    def send(self, content: bytes) -> None:
        """Send the next part."""

    def complete(self) -> None:
        """Finish the upload; only then does the object appear in the store."""

    def abort(self) -> None:
        """Discard the parts that were sent."""


def _start_upload(
    target: StoreObject,
    pieces: Sequence[Piece],
    source: Source,
    is_same_store: bool,
    metadata: Mapping[str, str],
) -> _Upload:
    size = total_size(pieces)
    is_copy = is_same_store and size >= MIN_PART and pieces == [Range(0, source.size)]
    store = s3_store(target.store)
    if store and (size > MAX_SINGLE_PUT or is_copy):
        return MultipartUpload(store, target.path, size, metadata, copies=is_same_store)
    if size > MAX_SINGLE_PUT:
        return _FileUpload(target)
    return _SingleRequestUpload(target, {"Metadata": metadata} if store and metadata else {})


def _copy_in_store(upload: _Upload, part: Part, source: Source) -> bool:
    """Let the store copy a part, and return whether it did."""
    piece = part[0]
    if len(part) > 1 or not isinstance(piece, Range):
        return False
    if not (isinstance(upload, MultipartUpload) and isinstance(source, RemoteFile)):
        return False
    try:
        upload.copy(source, piece)
    except Exception:  # Some stores cannot copy. If the source changed, reading the source raises the error.
        return False
    return True


class _SingleRequestUpload:
    least = most = sys.maxsize

    def __init__(self, target: StoreObject, options: Mapping[str, object]) -> None:
        self._target, self._options = target, options
        self._content = b""

    def send(self, content: bytes) -> None:
        self._content = content

    def complete(self) -> None:
        with signals_deferred():  # a signal would not stop the request, but only the wait for its end
            self._target.store.pipe_file(self._target.path, self._content, **self._options)

    def abort(self) -> None:
        pass


class _FileUpload:
    """Upload from a temporary file, which every fsspec store supports."""

    least = most = COPY_SIZE

    def __init__(self, target: StoreObject) -> None:
        self._target, self._folder = target, TemporaryDirectory(prefix="opshift-")
        self._path = Path(self._folder.name, "object")
        self._file = self._path.open("wb")

    def send(self, content: bytes) -> None:
        self._file.write(content)

    def complete(self) -> None:
        self._file.close()
        # by default, Azure's client refuses to replace an object
        options = {"overwrite": True} if "abfs" in self._target.protocols else {}
        self._target.store.put_file(str(self._path), self._target.path, **options)
        self._folder.cleanup()

    def abort(self) -> None:
        self._file.close()
        self._folder.cleanup()
