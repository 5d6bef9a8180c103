"""Objects in stores such as S3, which fsspec accesses. It is imported only if a URL is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import BinaryIO, Protocol

from opshift.model.errors import InvalidModel, OpshiftError, UsageError

IDENTITY = (
    "ETag",
    "etag",
    "generation",
    "blob_id",
    "md5",
    "created",
    "mtime",
    "last_modified",
    "Last-Modified",
)
"""Keys of an object's description that change with its content, in the order of preference."""


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
    """Object, or folder, in a store; `location` is its URL, and names it in messages."""

    def __init__(self, location: str, store: Store, path: str) -> None:
        self.location, self.store, self.path = location, store, path

    @property
    def protocols(self) -> tuple[str, ...]:
        """The schemes of URLs of the store."""
        protocol = self.store.protocol
        return (protocol,) if isinstance(protocol, str) else tuple(protocol)

    @classmethod
    def at(cls, location: str) -> StoreObject:
        """Return the object with a URL, which may not exist yet.

        Raises:
            UsageError: no installed package supports the scheme of the URL, or the URL is invalid.
        """
        scheme, _, rest = location.partition("://")
        scheme = scheme.lower()
        url = f"{scheme}://{rest}"
        if scheme in ("file", "local"):  # fsspec does not replace local files as a whole
            raise UsageError("is the URL of a local file", place=location, remedy=f"write its path: {rest}")
        try:
            from fsspec import get_filesystem_class
        except ImportError as error:
            raise UsageError("fsspec is not installed", place=location, remedy=INSTALL) from error
        try:
            # the listings of a store, which fsspec would keep, change while a batch runs; and unlike
            # fsspec's own functions for URLs, this does not follow `::` in a name to another store
            kind = get_filesystem_class(scheme)
            options = kind._get_kwargs_from_urls(url)  # such as the host in the URL
            if scheme in ("http", "https"):
                from opshift.model.remote.redirects import client_of_one_host

                options |= {"get_client": client_of_one_host}
            return cls(location, kind(**options, use_listings_cache=False), kind._strip_protocol(url))
        except ImportError as error:
            remedy = INSTALL_SCHEME.get(scheme, "install the package that the message names")
            raise UsageError(f"cannot be opened: {error}", place=location, remedy=remedy) from error
        except ValueError as error:
            reason, remedy = f"is not a usable URL: {error}", "correct the URL; https: and s3: are examples"
            raise UsageError(reason, place=location, remedy=remedy) from error

    def info(self) -> Mapping[str, object] | None:
        """Return the description in the store, or `None` if it does not exist."""
        with suppress(FileNotFoundError), raising_invalid_model(self.location):
            return self.store.info(self.path)
        return None


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
"""Packages that fsspec needs for a scheme."""


@contextmanager
def raising_invalid_model(location: str) -> Iterator[None]:
    """Raise errors of a store as InvalidModel, except that a file does not exist.

    The client libraries of stores raise classes of errors that only they define. For web servers, fsspec
    reports every error as that of a missing file.
    """
    try:
        yield
    except OpshiftError:
        raise
    except FileNotFoundError as error:
        cause = error.__cause__
        if isinstance(cause, OpshiftError):
            raise cause from error
        is_web = location.lower().startswith(("http:", "https:"))
        if is_web and isinstance(cause, Exception) and getattr(cause, "status", 0) != 404:
            raise unreadable_object(cause, location) from error
        raise
    except Exception as error:
        raise unreadable_object(error, location) from error


def unreadable_object(error: Exception, location: str) -> InvalidModel:
    """Return the error for an object that cannot be read."""
    remedy = "check the URL, the credentials and the network"
    return InvalidModel(f"cannot be read: {error_text(error)}", place=location, remedy=remedy)


def error_text(error: Exception) -> str:
    """Return the message of an error, or its class if the message is empty."""
    # the text of an error of a connection names the host, `strerror` only the cause
    has_host = hasattr(error, "host")
    return (not has_host and getattr(error, "strerror", None)) or str(error) or type(error).__name__


def identity_of(info: Mapping[str, object]) -> str:
    """Return what changes with the content of an object: its size, and its digest, version or time."""
    version = next((info[key] for key in IDENTITY if info.get(key)), "")
    return f"{str(version).strip(chr(34))}-{info['size']}"
