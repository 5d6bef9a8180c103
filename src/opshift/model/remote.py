"""Objects in stores such as S3, read in byte ranges through fsspec.

This module is imported only if a URL is given.
"""

from __future__ import annotations

import io
from bisect import bisect, insort
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import BinaryIO, Protocol, cast

from opshift.model.binary_files import read_blocks, temporary_copy
from opshift.model.errors import InvalidModel, OpshiftError, UsageError
from opshift.model.file_formats import changed_file
from opshift.model.locations import is_web_url
from opshift.model.stream_limits import client_of_one_host, limited

IDENTITY = (
    "ETag",
    "etag",
    "generation",
    "blob_id",
    "md5",
    "Content-MD5",
    "Digest",
    "created",
    "mtime",
    "last_modified",
    "Last-Modified",
)
"""Keys in an object's description whose values change with the content; the first key found counts."""


class Store(Protocol):
    """Methods of fsspec's file systems that opshift calls."""

    protocol: str | tuple[str, ...]

    def info(self, path: str) -> dict[str, object]:
        """Return the description of a file or folder."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        ...

    def ls(self, path: str, detail: bool) -> list[dict[str, object]]:
        """Return the descriptions of the files and folders in a folder."""
        ...

    def find(self, path: str) -> list[str]:
        """Return the paths of all files below a folder."""
        ...

    def open(self, path: str, mode: str = "rb", **options: object) -> BinaryIO:
        """Open a file."""
        ...

    def pipe_file(self, path: str, value: bytes, **options: object) -> object:
        """Write a file."""

    def put_file(self, local_path: str, path: str, **options: object) -> object:
        """Write a file with the content of a local file."""

    def rm_file(self, path: str) -> None:
        """Remove a file."""

    def unstrip_protocol(self, name: str) -> str:
        """Return the URL of a path."""
        ...


class StoreObject:
    """Object or folder in a store; `location` is its URL, which messages show."""

    def __init__(self, location: str, store: Store, path: str) -> None:
        self.location, self.store, self.path = location, store, path

    @property
    def protocols(self) -> tuple[str, ...]:
        """URL schemes of the store."""
        protocol = self.store.protocol
        return (protocol,) if isinstance(protocol, str) else tuple(protocol)

    @classmethod
    def at(cls, location: str) -> StoreObject:
        """Return the object at a URL; the object need not exist.

        Raises:
            UsageError: no installed package supports the scheme of the URL, or the URL is invalid.
            InvalidModel: the store cannot be reached.
        """
        scheme, _, rest = location.partition("://")
        scheme = scheme.lower()
        url = f"{scheme}://{rest}"
        if scheme in ("file", "local"):  # refused: fsspec does not replace local files atomically
            raise UsageError("is the URL of a local file", place=location, remedy=f"write its path: {rest}")
        try:
            from fsspec import get_filesystem_class
        except ImportError as error:
            raise UsageError("fsspec is not installed", place=location, remedy=INSTALL) from error
        try:
            # without cached listings, because a store changes while a batch runs; and without fsspec's
            # functions for URLs, because these follow `::` in a name to another store
            kind = get_filesystem_class(scheme)
            options = kind._get_kwargs_from_urls(url)  # for example, the host in the URL is invalid
            if scheme in ("http", "https"):
                options |= {"get_client": client_of_one_host}
            return cls(location, kind(**options, use_listings_cache=False), kind._strip_protocol(url))
        except ImportError as error:
            remedy = INSTALL_SCHEME.get(scheme, "install the package that the message names")
            raise UsageError(f"cannot be opened: {error}", place=location, remedy=remedy) from error
        except (ValueError, *LACKS_ARGUMENTS) as error:
            lacks = f"stores of the scheme {scheme} need more arguments"
            cause = lacks if isinstance(error, LACKS_ARGUMENTS) else str(error)
            remedy = "correct the URL; https: and s3: are examples"
            raise UsageError(f"is not a usable URL: {cause}", place=location, remedy=remedy) from error
        except Exception as error:  # some stores connect at once, and raise errors of many classes
            reason, remedy = f"cannot be opened: {error_text(error)}", CHECK_URL
            raise InvalidModel(reason, place=location, remedy=remedy) from error

    def info(self) -> Mapping[str, object] | None:
        """Return the store's description of the object, or `None` if the object does not exist."""
        with suppress(FileNotFoundError), raising_invalid_model(self.location):
            return self.store.info(self.path)
        return None


CHECK_URL = "check the URL, the credentials and the network"

LACKS_ARGUMENTS = (TypeError, AttributeError, LookupError, AssertionError, IsADirectoryError)
"""Errors of stores that need more than a URL; an archive store, for example, opens the working folder."""

INSTALL = "pip install 'opshift[stores]'"

INSTALL_SCHEME = {
    "s3": "pip install 'opshift[s3]'",
    "s3a": "pip install 'opshift[s3]'",
    "gs": "pip install gcsfs",
    "gcs": "pip install gcsfs",
    "az": "pip install adlfs",
    "abfs": "pip install adlfs",
    "abfss": "pip install adlfs",
    "hf": "pip install huggingface_hub",
    "http": "pip install aiohttp",
    "https": "pip install aiohttp",
}
"""Commands that install the package for a URL scheme."""


@contextmanager
def raising_invalid_model(location: str) -> Iterator[None]:
    """Turn errors of a store into InvalidModel; FileNotFoundError passes through.

    The client libraries of stores raise exceptions of many separate classes. For web servers, fsspec
    raises FileNotFoundError for every error, so only status 404 passes through.
    """
    try:
        yield
    except OpshiftError:
        raise
    except FileNotFoundError as error:
        cause = error.__cause__
        if isinstance(cause, OpshiftError):
            raise cause from error
        if is_web_url(location) and isinstance(cause, Exception) and getattr(cause, "status", 0) != 404:
            raise unreadable_object(cause, location) from error
        raise
    except Exception as error:
        raise unreadable_object(error, location) from error


def unreadable_object(error: Exception, location: str) -> InvalidModel:
    """Return the error for an object that cannot be read."""
    return InvalidModel(f"cannot be read: {error_text(error)}", place=location, remedy=CHECK_URL)


def error_text(error: Exception) -> str:
    """Return the message of an error, or its class if the message is empty."""
    # the text of a connection error names the host; its `strerror` names only the cause
    has_host = hasattr(error, "host")
    return (not has_host and getattr(error, "strerror", None)) or str(error) or type(error).__name__


def has_identity(info: Mapping[str, object]) -> bool:
    """Return whether a description has a digest, version or time; some web servers send none of them."""
    return any(map(info.get, IDENTITY))


def identity_of(info: Mapping[str, object]) -> str:
    """Return a text that changes with the content of an object: digest, version or time, and size.

    Without `has_identity`, the text changes with the size only.
    """
    version = next((info[key] for key in IDENTITY if info.get(key)), "")
    return f"{str(version).strip(chr(34))}-{info['size']}"


MIN_READ, MAX_READ = 1 << 13, 1 << 20
"""Minimum size in bytes of a read after a skipped tensor, and maximum size to which sequential reads grow."""

MAX_GAP = 1 << 16
"""Maximum gap in bytes between sequential reads: receiving the gap is faster than a new request."""

FIRST_READ = 1 << 18
"""Size in bytes of the first read of an S3 object, which replaces a request for the size of the object."""

MAX_KEPT = 1 << 26
"""Maximum number of bytes of short reads that are kept in memory."""

COPY_SIZE = 1 << 24
"""Number of bytes that are copied through memory at once: large, so that few requests are needed."""


class RemoteFile:
    """Object of a store that is open for reading, with the methods of `SourceFile`; it must not change.

    Readers skip tensors, so a read after a jump requests few more bytes than it needs; sequential reads
    request ever more. Received bytes are kept, because nested messages and unchanged parts are read again.
    """

    path = None
    file = -1
    """No file descriptor: the kernel cannot copy from a remote object."""

    copy_size = COPY_SIZE

    def __init__(
        self,
        source: StoreObject,
        info: Mapping[str, object],
        handle: BinaryIO | None = None,
        first: bytes = b"",
    ) -> None:
        """Read `handle`, or an object whose `first` bytes were received together with `info`."""
        self.source, self.place, self.info = source, source.location, info
        self.size = cast("int", info["size"])
        self._handle = handle
        self._kept = [(0, first)] if first else []
        self._kept_size = self._last_end = len(first)
        self._read_size = MAX_GAP >> 1
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
            return self._receive_range(start, end)
        after = bisect(self._kept, start, key=lambda part: part[0])
        base, found = self._kept[after - 1] if after else (0, b"")
        if end > base + len(found):
            is_near = 0 <= start - self._last_end <= MAX_GAP
            self._read_size = min(2 * self._read_size, MAX_READ) if is_near else MIN_READ
            base, found = start, self._receive_range(start, max(end, min(start + self._read_size, self.size)))
            if self._kept_size + len(found) > MAX_KEPT:
                self._kept.clear()
                self._kept_size = 0
            insort(self._kept, (base, found))
            self._kept_size += len(found)
        return found[start - base : end - base]

    def _receive_range(self, start: int, end: int) -> bytes:
        self.requests += 1
        try:
            with raising_invalid_model(self.place):
                if self._handle is None:
                    self._handle = _open_handle(self.source)
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
        if self.requests == 1:  # all bytes of one response are from one version of the object
            return
        self._require_same(self.source.info())

    def _require_same(self, info: Mapping[str, object] | None) -> None:
        if info is None or identity_of(info) != identity_of(self.info):
            raise changed_file("changed while it was read", self.place)


def open_url(location: str, *, needs_identity: bool = False) -> RemoteFile | io.FileIO:
    """Open the object at a URL, see `open_object`; raise its errors and those of `StoreObject.at`."""
    return open_object(StoreObject.at(location), needs_identity=needs_identity)


def open_object(source: StoreObject, *, needs_identity: bool = False) -> RemoteFile | io.FileIO:
    """Open an object, or a temporary copy of the object if the server cannot send byte ranges.

    With `needs_identity`, an object of a web server is also copied if it has no digest, version or time:
    ranges from several responses could belong to different contents of equal size.

    Raises:
        InvalidModel: the object does not exist, or cannot be read.
    """
    try:
        with raising_invalid_model(source.location):
            if "s3" in source.protocols:
                # after an error, other requests show whether the object is missing, empty, or a folder
                with suppress(Exception):
                    return _open_s3_object(source)
                _require_key(source)
            handle = _open_handle(source)
            info: Mapping[str, object] = getattr(handle, "details", None) or {}
            if not has_identity(info):
                info = source.store.info(source.path)
            lacks_identity = needs_identity and "https" in source.protocols and not has_identity(info)
            if info["type"] == "file" and (lacks_identity or not _has_ranges(handle, info)):
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
        raise _folder_error(source)
    return RemoteFile(source, info, handle)


def _folder_error(source: StoreObject) -> InvalidModel:
    return InvalidModel("is a folder", place=source.location, remedy="name a file in the folder")


def _require_key(source: StoreObject) -> None:
    """Raise an error for the URL of a bucket; s3fs would only report that the path is not key-like."""
    if not cast("_S3", source.store).split_path(source.path)[1]:
        source.store.info(source.path)  # `bucket_info` raises FileNotFoundError if the bucket does not exist
        raise _folder_error(source)


def _open_handle(source: StoreObject) -> BinaryIO:
    return source.store.open(source.path, cache_type="none")


def _open_s3_object(source: StoreObject) -> RemoteFile:
    """Open an S3 object with one request, which receives a small object completely."""
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
    """Attributes of s3fs's file system that this module uses."""

    loop: object

    def split_path(self, path: str) -> tuple[str, str, str | None]: ...

    async def _call_s3(self, method: str, **parameters: object) -> dict[str, object]: ...


class _Body(Protocol):
    """Data of an S3 object while a request receives it."""

    async def __aenter__(self) -> _Body: ...

    async def __aexit__(self, *error: object) -> None: ...

    async def read(self) -> bytes: ...


def _has_ranges(handle: BinaryIO, info: Mapping[str, object]) -> bool:
    """Return whether the server sends byte ranges; only HTTP servers may ignore the range of a request."""
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
    """Return the number of compressed bytes that a web server sends; `None` for uncompressed content."""
    headers: Mapping[str, str] = getattr(getattr(stream, "r", None), "headers", {})
    encoding, length = headers.get("Content-Encoding", "identity"), headers.get("Content-Length", "")
    if encoding in ("", "identity"):
        return None
    # An unknown size counts as 0: only `FREE_BYTES` of decompressed content are then accepted.
    return int(length) if length.isdecimal() else 0
