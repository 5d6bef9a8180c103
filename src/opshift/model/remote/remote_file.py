"""Reading of objects in stores by ranges. It is imported only if a URL is given."""

from __future__ import annotations

import io
from bisect import bisect, insort
from collections.abc import Mapping
from contextlib import suppress
from typing import BinaryIO, Protocol, cast

from opshift.model.binary_files import read_blocks, temporary_copy
from opshift.model.errors import InvalidModel
from opshift.model.file_formats import changed_file
from opshift.model.limited_stream import limited
from opshift.model.remote.store_object import (
    IDENTITY,
    StoreObject,
    identity_of,
    raising_invalid_model,
)

MIN_READ, MAX_READ = 1 << 13, 1 << 20
"""Size of a read in bytes after a jump over a tensor, and the size up to which sequential reads grow."""

NEAR = 1 << 16
"""Bytes that arrive sooner than the answer to another request: after a shorter jump, reads are sequential."""

FIRST_READ = 1 << 18
"""Bytes that are received when an object of S3 is opened, in place of a request for its size."""

MAX_KEPT = 1 << 26
"""Bytes of short reads that are kept."""

COPY_SIZE = 1 << 24
"""Bytes that are copied through memory at once: enough for few requests."""


class RemoteFile:
    """Open object that has to stay unchanged while it is read, with the methods of `SourceFile`.

    Tensors are skipped: short reads receive little after a jump, and more as they proceed. They are kept,
    because nested messages and unchanged parts are read again.
    """

    path = None
    file = -1
    """No descriptor: the kernel cannot copy from it."""

    copy_size = COPY_SIZE

    def __init__(
        self,
        source: StoreObject,
        info: Mapping[str, object],
        handle: BinaryIO | None = None,
        first: bytes = b"",
    ) -> None:
        """Read an open file, or an object whose first bytes were received with its description."""
        self.source, self.place, self.info = source, source.location, info
        self.size = cast("int", info["size"])
        self._handle = handle
        self._kept = [(0, first)] if first else []
        self._kept_size = self._last_end = len(first)
        self._read_size = NEAR >> 1
        self.requests = len(self._kept)
        """Number of requests for content, including copies that the store makes."""

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(self, *error: object) -> None:
        if self._handle:
            self._handle.close()

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two positions, or raise InvalidModel if the object lacks them."""
        if end - start > MAX_READ:
            return self._receive(start, end)
        after = bisect(self._kept, start, key=lambda part: part[0])
        base, found = self._kept[after - 1] if after else (0, b"")
        if end > base + len(found):
            is_near = 0 <= start - self._last_end <= NEAR
            self._read_size = min(2 * self._read_size, MAX_READ) if is_near else MIN_READ
            base, found = start, self._receive(start, max(end, min(start + self._read_size, self.size)))
            if self._kept_size + len(found) > MAX_KEPT:
                self._kept.clear()
                self._kept_size = 0
            insort(self._kept, (base, found))
            self._kept_size += len(found)
        return found[start - base : end - base]

    def _receive(self, start: int, end: int) -> bytes:
        self.requests += 1
        try:
            with raising_invalid_model(self.place):
                if self._handle is None:
                    self._handle = _open(self.source)
                    self._require_same(getattr(self._handle, "details", None))
                self._handle.seek(start)
                found = self._handle.read(end - start)
        except (InvalidModel, FileNotFoundError):
            self.require_unchanged()
            raise
        if len(found) != end - start:
            raise changed_file("was truncated while it was read", self.place)
        self._last_end = end
        return found

    def require_unchanged(self) -> None:
        """Raise InvalidModel if the object changed after it was opened."""
        if self.requests == 1:  # the store answers a request with one version of the object
            return
        self._require_same(self.source.info())

    def _require_same(self, info: Mapping[str, object] | None) -> None:
        if info is None or identity_of(info) != identity_of(self.info):
            raise changed_file("changed while it was read", self.place)


def open_url(location: str) -> RemoteFile | io.FileIO:
    """Open the object with a URL; raise errors like `open_object` and `StoreObject.at`."""
    return open_object(StoreObject.at(location))


def open_object(source: StoreObject) -> RemoteFile | io.FileIO:
    """Open an object; a temporary copy of it if the server cannot send ranges.

    Raises:
        InvalidModel: the object does not exist, or cannot be read.
    """
    try:
        with raising_invalid_model(source.location):
            if "s3" in source.protocols:
                # after an error, other requests show whether the object is missing, empty, or a folder
                with suppress(Exception):
                    return _begun(source)
            handle = _open(source)
            info: Mapping[str, object] = getattr(handle, "details", None) or {}
            if not any(map(info.get, IDENTITY)):
                info = source.store.info(source.path)
            if info["type"] == "file" and not _has_ranges(handle, info):
                handle.close()
                with source.store.open(source.path, block_size=0) as stream:
                    blocks = limited(read_blocks(stream), source.location, _compressed_size(stream))
                    copy = io.FileIO(temporary_copy(blocks))
                copy.name = source.location
                copy.seek(0)
                return copy
    except FileNotFoundError as error:
        reason, remedy = "object does not exist", "correct the URL"
        raise InvalidModel(reason, place=source.location, remedy=remedy) from error
    if info["type"] != "file":
        raise InvalidModel("is a folder", place=source.location, remedy="name a file in the folder")
    return RemoteFile(source, info, handle)


def _open(source: StoreObject) -> BinaryIO:
    return source.store.open(source.path, cache_type="none")


def _begun(source: StoreObject) -> RemoteFile:
    """Open an object of S3 with one request, which receives a small model as a whole."""
    from fsspec.asyn import sync

    store = cast("_S3", source.store)
    bucket, key, version = store.split_path(source.path)
    named = {"Bucket": bucket, "Key": key, **({"VersionId": version} if version else {})}

    async def receive() -> tuple[dict[str, object], bytes]:
        answer = await store._call_s3("get_object", **named, Range=f"bytes=0-{FIRST_READ - 1}")
        async with cast("_Body", answer["Body"]) as body:
            return answer, await body.read()

    answer, first = cast("tuple[dict[str, object], bytes]", sync(store.loop, receive))
    size = int(str(answer.get("ContentRange") or len(first)).rpartition("/")[2])
    return RemoteFile(source, {"type": "file", "size": size, "ETag": answer["ETag"]}, first=first)


class _S3(Protocol):
    loop: object

    def split_path(self, path: str) -> tuple[str, str, str | None]: ...

    async def _call_s3(self, method: str, **parameters: object) -> dict[str, object]: ...


class _Body(Protocol):
    async def __aenter__(self) -> _Body: ...

    async def __aexit__(self, *error: object) -> None: ...

    async def read(self) -> bytes: ...


def _has_ranges(handle: BinaryIO, info: Mapping[str, object]) -> bool:
    """Return whether the server sends ranges; only servers of HTTP may ignore a range."""
    size = cast("int | None", info["size"])
    if not hasattr(handle, "session"):
        return True
    if size is None:
        return False
    with suppress(ValueError):
        handle.seek(max(size - 1, 0))
        return len(handle.read(1)) == min(size, 1)
    return False


def _compressed_size(stream: BinaryIO) -> int | None:
    """Return the size of the content that a web server sends compressed, or `None` if it is not."""
    headers: Mapping[str, str] = getattr(getattr(stream, "r", None), "headers", {})
    encoding, length = headers.get("Content-Encoding", "identity"), headers.get("Content-Length", "")
    if encoding in ("", "identity"):
        return None
    # an unknown size counts as nothing: only the bytes that are always accepted remain
    return int(length) if length.isdecimal() else 0
